"""Creation functions."""

import math

import rushlight as torch

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """Numbers, nested sequences, buffers and other arrays as a tensor."""
    return torch.asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x, /, *, device=None, copy=None):
    """The array of another library, without a copy where that can be."""
    t = x if isinstance(x, torch.Tensor) and not copy else torch.from_dlpack(x)
    if device is not None and torch.device(device) != t.device:
        if copy is False:
            raise ValueError(f"from_dlpack: an array on {t.device} cannot reach {device} without a copy")
        t = t.to(device)
    return t.clone() if copy else t


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Evenly spaced numbers from start to before stop; none where the step leads away from it."""
    if stop is None:
        start, stop = 0, start
    if (step > 0 and stop <= start) or (step < 0 and stop >= start):
        if dtype is None:
            whole = all(isinstance(v, int) for v in (start, stop, step))
            dtype = torch.int64 if whole else torch.get_default_dtype()
        return torch.empty(0, dtype=dtype, device=device)
    return torch.arange(start, stop, step, dtype=dtype, device=device)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """`num` evenly spaced numbers from start to stop, or to before it."""
    if dtype is None and any(isinstance(v, complex) for v in (start, stop)):
        dtype = torch.promote_types(torch.get_default_dtype(), torch.complex64)
    if endpoint:
        return torch.linspace(start, stop, num, dtype=dtype, device=device)
    return torch.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def _sizes(shape):
    return (shape,) if isinstance(shape, int) else tuple(shape)


def empty(shape, *, dtype=None, device=None):
    """Uninitialised memory."""
    return torch.empty(_sizes(shape), dtype=dtype, device=device)


def zeros(shape, *, dtype=None, device=None):
    """All zeros."""
    return torch.zeros(_sizes(shape), dtype=dtype, device=device)


def ones(shape, *, dtype=None, device=None):
    """All ones."""
    return torch.ones(_sizes(shape), dtype=dtype, device=device)


def full(shape, fill_value, *, dtype=None, device=None):
    """All equal to fill_value, whose type decides the dtype."""
    return torch.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def empty_like(x, /, *, dtype=None, device=None):
    """Uninitialised memory of x's shape."""
    return torch.empty_like(x, dtype=dtype, device=device)


def zeros_like(x, /, *, dtype=None, device=None):
    """Zeros of x's shape."""
    return torch.zeros_like(x, dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    """Ones of x's shape."""
    return torch.ones_like(x, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """fill_value in x's shape."""
    return torch.full_like(x, fill_value, dtype=dtype, device=device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Ones on the diagonal k, zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    result = torch.zeros(n_rows, n_cols, dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        result.diagonal(k).fill_(1)
    return result


def tril(x, /, *, k=0):
    """The lower triangle of the last two dimensions."""
    return torch.tril(x, k)


def triu(x, /, *, k=0):
    """The upper triangle of the last two dimensions."""
    return torch.triu(x, k)


def meshgrid(*arrays, indexing="xy"):
    """Coordinates of the grid that 1-dim arrays span."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', but got {indexing!r}")
    if not arrays or math.prod(a.ndim for a in arrays) == 0:
        return [a.clone() for a in arrays]
    return list(torch.meshgrid(*arrays, indexing=indexing))
