"""`scan`: a loop that hands a value from step to step and collects results."""

from rushlight._higher_order_ops._parts import describe, mapped_leaves, stacked
from rushlight.utils import _pytree

__all__ = ["scan"]


def scan(combine_fn, init, xs=None, *, dim=0, reverse=False):
    """Run ``carry, y = combine_fn(carry, x)`` over the slices of `xs` along `dim`, beginning with `init`.

    Returns the last carry and the ys, stacked along the first dimension in the order of `xs`.
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    kinds, structure = _kind(init)
    if not kinds:
        raise RuntimeError("scan() operator requires init leaves.")
    if xs is None or not _pytree.tree_leaves(xs):
        return init, []
    leaves, spec = mapped_leaves("scan", xs, dim)
    steps = list(zip(*(leaf.unbind(0) for leaf in leaves), strict=True))
    carry, results = init, []
    for step in reversed(steps) if reverse else steps:
        carry, result = combine_fn(carry, _pytree.tree_unflatten(list(step), spec))
        if _kind(carry) != (kinds, structure):
            raise RuntimeError(
                f"scan: expected init and carry to have the same metadata, but init is {kinds} and the "
                f"carry is "
                f"{_kind(carry)[0]}"
            )
        results.append(result)
    return carry, stacked("scan", results[::-1] if reverse else results)


def _kind(value):
    leaves, structure = _pytree.tree_flatten(value)
    return describe(leaves), structure
