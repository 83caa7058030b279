"""`scan`: a loop that hands a value from step to step and collects results; exports record one node."""

from rushlight._higher_order_ops._parts import describe, mapped_leaves, recorder, stacked
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
    mode = recorder()
    if mode is not None and mode.tracer.whole_scans:
        return _recorded(combine_fn, init, leaves, spec, reverse)
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


def _recorded(combine_fn, init, leaves, spec, reverse):
    from rushlight._higher_order_ops._scan_operator import scan_operator

    carried, structure = _pytree.tree_flatten(init)
    made = []

    def step(*values):
        own, rows = list(values[: len(carried)]), list(values[len(carried) :])
        carry, result = combine_fn(_pytree.tree_unflatten(own, structure), _pytree.tree_unflatten(rows, spec))
        results, found = _pytree.tree_flatten(result)
        made[:] = [found]
        now, other = _pytree.tree_flatten(carry)
        if other != structure:
            raise RuntimeError(
                f"scan: expected init and carry to have the same structure, but init is {structure} and the "
                f"carry is {other}"
            )
        # What is carried on and given as a result, too, is two tensors.
        return *now, *(t.clone() if any(t is v for v in (*now, *values)) else t for t in results)

    leaves = [leaf.flip(0) for leaf in leaves] if reverse else leaves
    found = list(scan_operator(step, carried, leaves))
    carry, results = found[: len(carried)], found[len(carried) :]
    results = [r.flip(0) for r in results] if reverse else results
    return _pytree.tree_unflatten(carry, structure), _pytree.tree_unflatten(results, made[0])


def _kind(value):
    leaves, structure = _pytree.tree_flatten(value)
    return describe(leaves), structure
