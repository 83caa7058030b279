"""Operators that reduce, scan and sort along dimensions."""

import rushlight as torch

from .._graph import Value
from ._registry import RULES, rule


def _dims(x, dim):
    dims = [dim] if isinstance(dim, int) else list(dim or range(x.dim))
    return [d % x.dim for d in dims] if x.dim else []


def _reduce(g, kind, x, dim, keepdim, dtype=None):
    dims = _dims(x, dim)
    shape = [1 if d in dims else n for d, n in enumerate(x.shape) if keepdim or d not in dims]
    if g.opset < 18 and kind != "ReduceSum":
        return g.op(kind, x, axes=dims, keepdims=int(keepdim), shape=shape)
    return g.op(kind, x, g.ints(dims), keepdims=int(keepdim), shape=shape)


def _cast(g, x, dtype=None):
    return g.cast(x, dtype or g.out.dtype)


@rule("sum")
def sum_(g, x, dim=None, keepdim=False, *, dtype=None):
    return _reduce(g, "ReduceSum", _cast(g, x, dtype), dim, keepdim)


@rule("mean")
def mean(g, x, dim=None, keepdim=False, *, dtype=None):
    return _reduce(g, "ReduceMean", _cast(g, x, dtype), dim, keepdim)


@rule("prod")
def prod(g, x, dim=None, keepdim=False, *, dtype=None):
    return _reduce(g, "ReduceProd", _cast(g, x, dtype), dim, keepdim)


@rule("amax")
def amax(g, x, dim=(), keepdim=False):
    return _reduce(g, "ReduceMax", x, dim, keepdim)


@rule("amin")
def amin(g, x, dim=(), keepdim=False):
    return _reduce(g, "ReduceMin", x, dim, keepdim)


def _extreme(reduce, kind):
    def translate(g, x, dim=None, keepdim=False):
        if dim is None:
            return reduce(g, x)
        return reduce(g, x, dim, keepdim), _position(g, kind, x, dim, keepdim)

    return translate


def _position(g, kind, x, dim, keepdim):
    shape = [1 if d == dim % x.dim else n for d, n in enumerate(x.shape) if keepdim or d != dim % x.dim]
    return g.op(kind, x, dtype=torch.int64, axis=dim % x.dim, keepdims=int(keepdim), shape=shape)


RULES["max"], RULES["min"] = _extreme(amax, "ArgMax"), _extreme(amin, "ArgMin")


def _argument(kind):
    def translate(g, x, dim=None, keepdim=False):
        if dim is None:
            return _position(g, kind, g.reshape(x, [-1]), 0, False)
        return _position(g, kind, x, dim, keepdim)

    return translate


RULES["argmax"], RULES["argmin"] = _argument("ArgMax"), _argument("ArgMin")


def _truth(kind):
    def translate(g, x, dim=None, keepdim=False):
        as_number = g.cast(g.cast(x, torch.bool), torch.int32)
        return g.cast(_reduce(g, kind, as_number, dim, keepdim), torch.bool)

    return translate


RULES["any"], RULES["all"] = _truth("ReduceMax"), _truth("ReduceMin")


@rule("count_nonzero")
def count_nonzero(g, x, dim=None):
    return _reduce(g, "ReduceSum", g.cast(g.cast(x, torch.bool), torch.int64), dim, False)


def _number_of(g, x, dims):
    count = g.constant(1, torch.int64)
    for d in dims:
        count = g.op("Mul", count, g.size(x, d))
    return g.cast(count, x.dtype)


def _variance(g, x, dim, correction, keepdim):
    dims = _dims(x, dim)
    centre = _reduce(g, "ReduceMean", x, dims, True)
    off = g.op("Sub", x, centre, shape=x.shape)
    squares = _reduce(g, "ReduceSum", g.op("Mul", off, off), dims, keepdim)
    count = _number_of(g, x, dims)
    return g.op("Div", squares, g.op("Sub", count, 1 if correction is None else correction))


@rule("var")
def var(g, x, dim=None, *, correction=None, keepdim=False):
    return _variance(g, x, dim, correction, keepdim)


@rule("std")
def std(g, x, dim=None, *, correction=None, keepdim=False):
    return g.op("Sqrt", _variance(g, x, dim, correction, keepdim))


@rule("var_mean")
def var_mean(g, x, dim=None, *, correction=None, keepdim=False):
    return _variance(g, x, dim, correction, keepdim), _reduce(g, "ReduceMean", x, dim, keepdim)


@rule("std_mean")
def std_mean(g, x, dim=None, *, correction=None, keepdim=False):
    return std(g, x, dim, correction=correction, keepdim=keepdim), _reduce(g, "ReduceMean", x, dim, keepdim)


@rule("linalg_vector_norm")
def vector_norm(g, x, ord=2, dim=None, keepdim=False, *, dtype=None):
    x = _cast(g, x, dtype)
    if ord == 0:
        return g.cast(
            _reduce(g, "ReduceSum", g.cast(g.cast(x, torch.bool), torch.int64), dim, keepdim), x.dtype
        )
    if ord in (1, 2):
        return _reduce(g, f"ReduceL{int(ord)}", x, dim, keepdim)
    size = g.op("Abs", x)
    if ord in (float("inf"), float("-inf")):
        return _reduce(g, "ReduceMax" if ord > 0 else "ReduceMin", size, dim, keepdim)
    total = _reduce(g, "ReduceSum", g.op("Pow", size, ord), dim, keepdim)
    return g.op("Pow", total, 1 / ord)


@rule("_cdist_forward")
def cdist(g, x1, x2, p, compute_mode=None):
    """Norms of the differences of all pairs of rows."""
    rows, columns = x1.shape[-2], x2.shape[-2]
    x1 = g.op("Unsqueeze", x1, g.ints([-2]), shape=(*x1.shape[:-1], 1, x1.shape[-1]))
    x2 = g.op("Unsqueeze", x2, g.ints([-3]), shape=(*x2.shape[:-2], 1, *x2.shape[-2:]))
    lead = torch.broadcast_shapes(x1.shape[:-3], x2.shape[:-3])
    apart = g.op("Sub", x1, x2, shape=(*lead, rows, columns, x1.shape[-1]))
    return vector_norm(g, apart, p, [-1])


@rule("logsumexp")
def logsumexp(g, x, dim, keepdim=False):
    return _reduce(g, "ReduceLogSumExp", _cast(g, x), dim, keepdim)


@rule("cumsum")
def cumsum(g, x, dim, *, dtype=None):
    return g.op("CumSum", _cast(g, x, dtype), g.constant(dim, torch.int64)) if x.dim else _cast(g, x, dtype)


@rule("_softmax")
def softmax(g, x, dim, half_to_float=False):
    return g.op("Softmax", _cast(g, x), axis=dim)


@rule("_log_softmax")
def log_softmax(g, x, dim, half_to_float=False):
    return g.op("LogSoftmax", _cast(g, x), axis=dim)


def top_elements(g, x, k, dim, largest, in_order):
    shape = tuple(k if d == dim % x.dim and isinstance(k, int) else n for d, n in enumerate(x.shape))
    how = {"axis": dim, "largest": int(largest), "sorted": int(in_order)}
    values, indices = g.op("TopK", x, g.ints([k]), outputs=2, shape=shape, **how)
    return values, Value(indices.name, torch.int64, shape)


@rule("topk")
def topk(g, x, k, dim=-1, largest=True, sorted=True):
    return top_elements(g, x, k, dim, largest, sorted)


@rule("sort")
def sort(g, x, dim=-1, descending=False, *, stable=None):
    return top_elements(g, x, g.size(x, dim), dim, descending, True)


@rule("argsort")
def argsort(g, x, dim=-1, descending=False, stable=False):
    return top_elements(g, x, g.size(x, dim), dim, descending, True)[1]
