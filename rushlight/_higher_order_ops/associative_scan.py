"""`associative_scan`: running totals of any associative function, in logarithmically many steps."""

import rushlight
from rushlight._higher_order_ops._parts import describe, mapped_leaves
from rushlight.utils import _pytree

__all__ = ["associative_scan"]


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """The results of combining the slices of `xs` along `dim` up to each of them.

    Args:
        combine_fn: takes two slices (nested as `xs`) and gives one; must be associative.
        reverse: combine from the end.
        combine_mode: "pointwise" or "generic"; both serve any function here.
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, spec = mapped_leaves("associative_scan", xs, dim)
    each = rushlight.func.vmap(combine_fn)

    def combine(left, right):
        result = each(_pytree.tree_unflatten(left, spec), _pytree.tree_unflatten(right, spec))
        found, structure = _pytree.tree_flatten(result)
        if structure != spec or describe(found) != describe(left):
            raise RuntimeError(
                "associative_scan: combine_fn must return what it takes: expected slices of "
                f"{describe(left)}, got {describe(found)}"
            )
        return found

    leaves = [leaf.flip(0) for leaf in leaves] if reverse else leaves
    results = _totals(combine, leaves)
    results = [result.flip(0) for result in results] if reverse else results
    return _pytree.tree_unflatten([result.movedim(0, dim) for result in results], spec)


def _totals(combine, leaves):
    """Totals of pairs give every second total; one more combination gives those between."""
    length = leaves[0].shape[0]
    if length < 2:
        return leaves
    pairs = combine([x[:-1:2] for x in leaves], [x[1::2] for x in leaves])
    odd = _totals(combine, pairs)
    if length == 2:
        even = [x[:1] for x in leaves]
    else:
        before = [x[:-1] for x in odd] if length % 2 == 0 else odd
        between = combine(before, [x[2::2] for x in leaves])
        even = [rushlight.cat([x[:1], y]) for x, y in zip(leaves, between, strict=True)]
    return [_interleaved(a, b) for a, b in zip(even, odd, strict=True)]


def _interleaved(even, odd):
    both = rushlight.stack([even[: odd.shape[0]], odd], 1).flatten(0, 1)
    return rushlight.cat([both, even[-1:]]) if even.shape[0] > odd.shape[0] else both
