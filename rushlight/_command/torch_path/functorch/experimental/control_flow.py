"""Branches and loops that a graph keeps."""

from rushlight._higher_order_ops import cond
from rushlight._higher_order_ops.map import _stack_pytree, _unstack_pytree, map

__all__ = ["_stack_pytree", "_unstack_pytree", "cond", "map"]
