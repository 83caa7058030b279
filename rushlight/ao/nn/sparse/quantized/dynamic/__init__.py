"""Layers of sparse integers whose operands get their scale at each call."""

from .linear import Linear

__all__ = ["Linear"]
