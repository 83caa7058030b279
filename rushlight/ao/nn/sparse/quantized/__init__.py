"""Layers of integers whose weights are zero in blocks."""

from . import dynamic
from .linear import Linear, LinearPackedParams

__all__ = ["Linear", "LinearPackedParams", "dynamic"]
