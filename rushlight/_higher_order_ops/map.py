"""`map`: a function of one example, over a batch."""

from rushlight._higher_order_ops._parts import mapped_leaves, stacked
from rushlight.utils import _pytree

__all__ = ["map"]


def map(f, xs, *args):
    """``f(x, *args)`` for each `x` in `xs` (a tensor, or nested ones) along the first dimension, stacked."""
    if not callable(f):
        raise RuntimeError(f"map: f must be callable, got {type(f).__name__}")
    leaves, spec = mapped_leaves("map", xs)
    return stacked(
        "map", [f(_pytree.tree_unflatten(step, spec), *args) for step in zip(*leaves, strict=True)]
    )
