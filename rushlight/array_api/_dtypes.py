"""Data types: questions about them, conversion, and promotion without regard to dimensions."""

import builtins
from dataclasses import dataclass
from functools import reduce

import rushlight as torch

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)
UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
REAL = (torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
KINDS = {
    "bool": (torch.bool,),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": REAL,
    "complex floating": COMPLEX,
    "numeric": SIGNED + UNSIGNED + REAL + COMPLEX,
}


def isdtype(dtype, kind):
    """Whether dtype is of a kind: a dtype, one of the standard's names for groups, or a tuple of these."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: unrecognized kind {kind!r}; expected one of {', '.join(KINDS)}")
        return dtype in KINDS[kind]
    return dtype == kind


def astype(x, dtype, /, *, copy=True, device=None):
    """x as another dtype; a copy unless ``copy=False`` and nothing changes."""
    if x.is_complex() and not dtype.is_complex:
        raise TypeError(f"astype: {x.dtype} cannot become {dtype}; take real(x) or imag(x)")
    return x.to(device=x.device if device is None else device, dtype=dtype, copy=copy)


def _dtype_of(value):
    return value.dtype if isinstance(value, torch.Tensor) else value


def _scalar_dtype(value, dtype):
    """The dtype that a Python number takes on beside an array of `dtype`."""
    if isinstance(value, builtins.bool) or dtype.is_complex:
        return dtype
    if isinstance(value, complex):
        return torch.complex128 if dtype == torch.float64 else torch.complex64
    if isinstance(value, float) and not dtype.is_floating_point:
        return torch.get_default_dtype()
    return torch.int64 if dtype == torch.bool else dtype


def result_type(*arrays_and_dtypes):
    """What arrays, dtypes and Python numbers promote to."""
    found = [_dtype_of(a) for a in arrays_and_dtypes]
    dtypes = [d for d in found if isinstance(d, torch.dtype)]
    if not dtypes:
        raise ValueError("result_type: at least one array or dtype is required")
    dtype = reduce(torch.promote_types, dtypes)
    return reduce(
        lambda have, value: _scalar_dtype(value, have),
        [d for d in found if not isinstance(d, torch.dtype)],
        dtype,
    )


def promoted(*values):
    """All values as tensors of their common dtype."""
    dtype = result_type(*values)
    device = next((v.device for v in values if isinstance(v, torch.Tensor)), None)
    return tuple(
        (v if v.dtype == dtype else v.to(dtype))
        if isinstance(v, torch.Tensor)
        else torch.tensor(v, dtype=dtype, device=device)
        for v in values
    )


def can_cast(from_, to, /):
    """Whether promotion may turn from_ (an array or dtype) into `to`."""
    try:
        return torch.promote_types(_dtype_of(from_), to) == to
    except RuntimeError:
        return False


@dataclass(frozen=True)
class finfo_object:
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: torch.dtype


@dataclass(frozen=True)
class iinfo_object:
    bits: int
    max: int
    min: int
    dtype: torch.dtype


def finfo(type, /):
    """Limits of a floating dtype; of the parts, where it is complex."""
    dtype = _dtype_of(type)
    dtype = {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(dtype, dtype)
    f = torch.finfo(dtype)
    return finfo_object(f.bits, f.eps, f.max, f.min, f.smallest_normal, dtype)


def iinfo(type, /):
    """Limits of an integer dtype."""
    dtype = _dtype_of(type)
    i = torch.iinfo(dtype)
    return iinfo_object(i.bits, i.max, i.min, dtype)
