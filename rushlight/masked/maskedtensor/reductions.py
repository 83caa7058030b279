"""Reductions of masked tensors, which leave masked-out elements out."""

__all__ = ["REDUCE_NAMES"]

REDUCE_NAMES = "all amax amin any argmax argmin mean norm prod std sum var".split()
