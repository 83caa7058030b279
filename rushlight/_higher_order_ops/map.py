"""`map`: a function of one example, over a batch; where a trace records it, a node of the graph."""

import rushlight
from rushlight._higher_order_ops._parts import mapped_leaves, recorder, stacked
from rushlight.utils import _pytree

__all__ = ["map"]


def map(f, xs, *args):
    """``f(x, *args)`` for each `x` in `xs` (a tensor, or nested ones) along the first dimension, stacked."""
    if not callable(f):
        raise RuntimeError(f"map: f must be callable, got {type(f).__name__}")
    _check(_pytree.tree_leaves(xs))
    leaves, spec = mapped_leaves("map", xs)
    if recorder() is not None and rushlight._C._functorch.maybe_current_level() is None:
        return _recorded(f, leaves, spec, args)
    return stacked(
        "map", [f(_pytree.tree_unflatten(step, spec), *args) for step in zip(*leaves, strict=True)]
    )


def _check(xs):
    """Refuse what cannot be gone over, in PyTorch's words."""
    if not all(isinstance(x, rushlight.Tensor) for x in xs):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {xs}.")
    lengths = [x.shape[0] for x in xs if x.dim()]
    if 0 in lengths:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if len(set(lengths)) > 1:
        shapes = [x.shape for x in xs]
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")


def _recorded(f, leaves, spec, args):
    from rushlight._higher_order_ops._map_operator import map_operator

    given, nesting = _pytree.tree_flatten(args)
    found = []

    def flat(*values):
        rows = _pytree.tree_unflatten(list(values[: len(leaves)]), spec)
        rest = _pytree.tree_unflatten(list(values[len(leaves) :]), nesting)
        results, structure = _pytree.tree_flatten(f(rows, *rest))
        found[:] = structure, [None if isinstance(r, rushlight.Tensor) else (r,) for r in results]
        return tuple(r for r in results if isinstance(r, rushlight.Tensor))

    tensors = iter(map_operator(flat, leaves, given))
    structure, plain = found
    return _pytree.tree_unflatten([next(tensors) if p is None else p[0] for p in plain], structure)


def _stack_pytree(pytrees):
    """Nested values of equal structure as one, with the tensors stacked."""
    return stacked("map", pytrees)


def _unstack_pytree(xs):
    """The nested values of all rows of nested tensors."""
    leaves, spec = mapped_leaves("map", xs)
    return [_pytree.tree_unflatten(list(step), spec) for step in zip(*leaves, strict=True)]


def __getattr__(name):
    if name == "map_impl":  # the operator behind it
        from rushlight._higher_order_ops._map_operator import map_operator

        return map_operator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
