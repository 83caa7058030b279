"""Branches and loops that a graph keeps."""

from rushlight._higher_order_ops import cond
from rushlight._higher_order_ops.map import map

__all__ = ["cond", "map"]
