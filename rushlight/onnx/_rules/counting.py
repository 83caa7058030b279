"""Operators that count: how often values occur, how often elements are repeated."""

import rushlight as torch

from ._registry import rule


def _range(g, count):
    """0, 1, ... to below a scalar value."""
    return g.op("Range", g.constant(0, torch.int64), count, g.constant(1, torch.int64), shape=(1,))


@rule("bincount")
def bincount(g, x, weights=None, minlength=0):
    x = g.cast(x, torch.int64)
    largest = g.op("Concat", x, g.ints([minlength - 1]), axis=0, shape=(x.shape[0] + 1,))
    length = g.op("Add", g.op("ReduceMax", largest, keepdims=1, shape=(1,)), 1)
    sizes = g.op("Shape", x, dtype=torch.int64, shape=(1,))
    dtype = torch.int64 if weights is None else g.out.dtype
    zeros = g.op("ConstantOfShape", length, dtype=torch.float32, shape=g.out.shape)
    ones = g.op("Expand", g.constant(1, dtype), sizes, shape=x.shape)
    added = ones if weights is None else g.cast(weights, dtype)
    return g.op("ScatterElements", g.cast(zeros, dtype), x, added, axis=0, reduction="add")


@rule("histc")
def histc(g, x, bins=100, min=0, max=0):
    """The last bin holds its upper edge; what lies outside of all is not counted."""
    x = g.reshape(x, [-1])
    low, high = g.constant(float(min), x.dtype), g.constant(float(max), x.dtype)
    if min == max:
        low, high = (g.op(kind, x, keepdims=0, shape=()) for kind in ("ReduceMin", "ReduceMax"))
        # Equal elements lie in the middle of a range of two.
        equal = g.op("Equal", low, high, dtype=torch.bool)
        low = g.op("Where", equal, g.op("Sub", low, 1.0), low, dtype=x.dtype)
        high = g.op("Where", equal, g.op("Add", high, 1.0), high, dtype=x.dtype)
    inside = g.op(
        "And",
        g.op("GreaterOrEqual", x, low, dtype=torch.bool, shape=x.shape),
        g.op("LessOrEqual", x, high, dtype=torch.bool, shape=x.shape),
    )
    share = g.op("Div", g.op("Sub", x, low), g.op("Sub", high, low))
    share = g.op("Where", inside, share, g.constant(0.0, x.dtype), dtype=x.dtype, shape=x.shape)
    places = g.op("Min", g.cast(g.op("Mul", share, float(bins)), torch.int64), bins - 1)
    zeros = g.initializer("zeros", torch.zeros(bins, dtype=x.dtype))
    return g.op("ScatterElements", zeros, places, g.cast(inside, x.dtype), axis=0, reduction="add")


@rule("repeat_interleave")
def repeat_interleave(g, repeats, *, output_size=None):
    """Which element each place of the result comes from: how many runs have ended there."""
    repeats = g.cast(repeats, torch.int64)
    ends = g.op("CumSum", repeats, g.constant(0, torch.int64))
    total = g.op("ReduceSum", repeats, keepdims=0, shape=())
    places = g.op("Unsqueeze", _range(g, total), g.ints([1]), shape=(1, 1))
    shape = (g.out.shape[0], repeats.shape[0])
    ended = g.op("LessOrEqual", ends, places, dtype=torch.bool, shape=shape)
    return g.op("ReduceSum", g.cast(ended, torch.int64), g.ints([1]), keepdims=0, shape=g.out.shape)


@rule("unfold_backward")
def unfold_backward(g, grad_in, input_sizes, dim, size, step):
    """Windows are added up where they were taken from."""
    rank = len(input_sizes)
    dim %= rank
    others = [d for d in range(rank) if d != dim]
    starts = g.op("Mul", _range(g, g.size(grad_in, dim)), step)
    starts = g.op("Unsqueeze", starts, g.ints([1]), shape=(1, 1))
    within = g.constant(list(range(size)), torch.int64)
    places = g.op("Add", starts, within, shape=(grad_in.shape[dim], size))
    places = g.op("Unsqueeze", places, g.ints([2]), shape=(*places.shape, 1))
    moved = g.op("Transpose", grad_in, perm=[dim, rank, *others])
    order = [dim, *others]
    sizes = g.ints([input_sizes[d] for d in order])
    zeros = g.cast(g.op("ConstantOfShape", sizes, dtype=torch.float32, shape=g.out.shape), grad_in.dtype)
    added = g.op("ScatterND", zeros, places, moved, reduction="add")
    return g.op("Transpose", added, perm=[order.index(d) for d in range(rank)], shape=g.out.shape)


@rule("_local_scalar_dense")
def local_scalar_dense(g, x):
    """A number of the data, such as a size: a tensor of no dimensions."""
    number = g.reshape(x, []) if x.dim else x
    return number if x.is_floating_point else g.cast(number, torch.int64)
