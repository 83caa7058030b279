"""Running products, extremes and sums of exponentials, for which ONNX has no operators: each result is
reduced from all elements up to it, which takes memory quadratic in the dimension."""

import math

import rushlight as torch

from ._registry import RULES, rule


def _up_to_each(g, x, dim, neutral):
    """The elements up to each place of a dimension, the rest neutral, along a new dimension behind it."""
    dim %= x.dim
    places = g.op("Range", 0, g.size(x, dim), 1, dtype=torch.int64, shape=(x.shape[dim],))
    column = g.op("Unsqueeze", places, g.ints([1]), shape=(x.shape[dim], 1))
    square = (x.shape[dim], x.shape[dim])
    before = g.op("GreaterOrEqual", column, places, dtype=torch.bool, shape=square)
    rest = x.dim - 1 - dim
    if rest:
        axes = list(range(2, 2 + rest))
        before = g.op("Unsqueeze", before, g.ints(axes), shape=(*square, *[1] * rest))
    spread = g.op("Unsqueeze", x, g.ints([dim]), shape=(*x.shape[:dim], 1, *x.shape[dim:]))
    shape = (*x.shape[:dim], *square, *x.shape[dim + 1 :])
    held = g.op("Where", before, spread, g.constant(neutral, x.dtype), dtype=x.dtype, shape=shape)
    return held, dim + 1


def _reduced(g, kind, x, dim, neutral):
    held, axis = _up_to_each(g, x, dim, neutral)
    return g.op(kind, held, g.ints([axis]), keepdims=0, shape=x.shape)


@rule("cumprod")
def cumprod(g, x, dim, *, dtype=None):
    x = g.cast(x, dtype or g.out.dtype)
    return _reduced(g, "ReduceProd", x, dim, 1) if x.dim else x


@rule("logcumsumexp")
def logcumsumexp(g, x, dim):
    return _reduced(g, "ReduceLogSumExp", x, dim, -math.inf) if x.dim else x


def _running(reduce, position, neutral):
    def translate(g, x, dim):
        limit = (
            neutral if x.is_floating_point else getattr(torch.iinfo(x.dtype), "min" if neutral < 0 else "max")
        )
        held, axis = _up_to_each(g, x, dim, limit)
        values = g.op(reduce, held, g.ints([axis]), keepdims=0, shape=x.shape)
        how = {"axis": axis, "keepdims": 0, "select_last_index": 1}
        return values, g.op(position, held, dtype=torch.int64, shape=x.shape, **how)

    return translate


RULES["cummax"] = _running("ReduceMax", "ArgMax", -math.inf)
RULES["cummin"] = _running("ReduceMin", "ArgMin", math.inf)
