"""Reductions and running sums."""

import rushlight as torch
from rushlight.array_api._dtypes import COMPLEX, REAL, UNSIGNED

__all__ = [
    "all",
    "any",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]


def _axes(x, axis):
    """The axes to reduce, counted from the front; all where axis is None."""
    if axis is None:
        return tuple(range(x.ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in axes:
        if not -x.ndim <= a < x.ndim:
            raise IndexError(f"axis {a} is out of bounds for an array of {x.ndim} dimensions")
    return tuple(a % x.ndim for a in axes)


def _accumulator(x, dtype):
    """Sums of integers are taken in 64 bits."""
    if dtype is not None:
        return dtype
    if x.dtype in REAL or x.dtype in COMPLEX or x.is_floating_point():
        return x.dtype
    return torch.uint64 if x.dtype in UNSIGNED else torch.int64


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum over axes."""
    dtype, axes = _accumulator(x, dtype), _axes(x, axis)
    return torch.sum(x, axes, keepdims, dtype=dtype) if axes else x.to(dtype, copy=True)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product over axes."""
    dtype, axes = _accumulator(x, dtype), _axes(x, axis)
    result = x.to(dtype, copy=True)
    for a in sorted(axes, reverse=True):
        result = torch.prod(result, a, keepdims, dtype=dtype)
    return result


def _over(operator, x, axis, keepdims):
    axes = _axes(x, axis)
    return operator(x, axes, keepdims) if axes else x.clone()


def max(x, /, *, axis=None, keepdims=False):
    """The largest value over axes."""
    return _over(torch.amax, x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """The smallest value over axes."""
    return _over(torch.amin, x, axis, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    """The mean over axes."""
    return _over(torch.mean, x, axis, keepdims)


def all(x, /, *, axis=None, keepdims=False):
    """Whether all elements are true."""
    return _over(torch.all, x != 0, axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """Whether an element is true."""
    return _over(torch.any, x != 0, axis, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The variance over axes: the mean square distance from the mean, over n - correction."""
    return _spread(torch.var, x, axis, correction, keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The square root of the variance."""
    return _spread(torch.std, x, axis, correction, keepdims)


def _spread(operator, x, axis, correction, keepdims):
    axes = _axes(x, axis)
    if not axes:  # of each element by itself
        return operator(x.unsqueeze(-1), -1, correction=correction)
    return operator(x, axes, correction=correction, keepdim=keepdims)


def _cumulative(operator, start, x, axis, dtype, include_initial):
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"axis must be given for an array of {x.ndim} dimensions")
        axis = 0
    dtype = _accumulator(x, dtype)
    # Sums modulo 2^64 have the same bits with and without a sign.
    result = operator(x, axis, dtype=torch.int64 if dtype == torch.uint64 else dtype).to(dtype)
    if not include_initial:
        return result
    shape = list(x.shape)
    shape[axis] = 1
    first = torch.full(shape, start, dtype=result.dtype, device=x.device)
    return torch.cat([first, result], axis)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running sums along axis, with a 0 in front if asked for."""
    return _cumulative(torch.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running products along axis, with a 1 in front if asked for."""
    return _cumulative(torch.cumprod, 1, x, axis, dtype, include_initial)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Differences of neighbours along axis, n times."""
    parts = [p for p in (prepend, x, append) if p is not None]
    result = torch.cat(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        size = result.shape[axis]
        if size == 0:
            break
        after, before = (result.narrow(axis, start, size - 1) for start in (1, 0))
        result = after ^ before if result.dtype == torch.bool else after - before
    return result
