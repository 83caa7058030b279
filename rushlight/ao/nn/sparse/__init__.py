"""Layers whose weights are zero in blocks."""

from . import quantized

__all__ = ["quantized"]
