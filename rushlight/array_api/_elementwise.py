"""Element-wise functions. Operands promote by dtype alone, also where one has no dimensions."""

import rushlight as torch
from rushlight.array_api._dtypes import promoted

_UNARY = {
    name: name
    for name in (
        "abs acos acosh asin asinh atan atanh cos cosh exp expm1 isfinite isinf isnan log log1p log2 "
        "log10 logical_not negative positive reciprocal sin sinh square sqrt tan tanh signbit"
    ).split()
} | {"bitwise_invert": "bitwise_not"}
_BINARY = {
    name: name
    for name in (
        "add atan2 bitwise_and bitwise_or bitwise_xor copysign floor_divide greater greater_equal hypot less "
        "less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter "
        "not_equal pow subtract bitwise_left_shift bitwise_right_shift"
    ).split()
} | {"equal": "eq", "divide": "true_divide"}

_WRITTEN = "ceil clip conj floor imag real remainder round sign trunc".split()

__all__ = sorted([*_UNARY, *_BINARY, *_WRITTEN])


def _named(function, name, source):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As `rushlight.{source}`, element by element."
    return function


def _unary(name, source):
    operator = getattr(torch, source)

    def function(x, /):
        return operator(x)

    return _named(function, name, source)


def _binary(name, source):
    operator = getattr(torch, source)

    def function(x1, x2, /):
        return operator(*promoted(x1, x2))

    return _named(function, name, source)


globals().update({name: _unary(name, source) for name, source in _UNARY.items()})
globals().update({name: _binary(name, source) for name, source in _BINARY.items()})


def _whole(operator):
    """Rounding, which leaves integers as they are."""

    def function(x, /):
        return x.clone() if not (x.is_floating_point() or x.is_complex()) else operator(x)

    return _named(function, operator.__name__, operator.__name__)


ceil, floor, trunc = _whole(torch.ceil), _whole(torch.floor), _whole(torch.trunc)


def round(x, /):
    """To the nearest integer, halves to even; complex numbers part by part."""
    if x.is_complex():
        return torch.complex(torch.round(x.real), torch.round(x.imag))
    return torch.round(x) if x.is_floating_point() else x.clone()


def sign(x, /):
    """-1, 0 or 1; x / abs(x) for complex numbers; NaN for NaN."""
    s = torch.sgn(x)
    return torch.where(torch.isnan(x), x, s) if x.is_floating_point() or x.is_complex() else s


def remainder(x1, x2, /):
    """What division with rounding down leaves, with the divisor's sign, also where it is zero."""
    x1, x2 = promoted(x1, x2)
    rest = torch.remainder(x1, x2)
    return torch.where(rest == 0, torch.copysign(rest, x2), rest) if rest.is_floating_point() else rest


def real(x, /):
    """The real part, a view of x."""
    return torch.real(x)


def conj(x, /):
    """The conjugate, computed at once: other libraries look at the memory of arrays."""
    return torch.conj_physical(x)


def imag(x, /):
    """The imaginary part, a view of x; zeros where x is real."""
    return torch.imag(x) if x.is_complex() else torch.zeros_like(x)


def clip(x, /, min=None, max=None):
    """x with what is below min or above max replaced by these; NaN where one of the three is."""
    result = x
    for bound, pick in ((min, torch.maximum), (max, torch.minimum)):
        if bound is None:
            continue
        if not isinstance(bound, torch.Tensor):
            if not (x.is_floating_point() or isinstance(bound, float)):
                info = torch.iinfo(x.dtype)  # a bound out of range says the same as the range's end
                bound = info.max if bound > info.max else info.min if bound < info.min else bound
            bound = torch.tensor(bound, dtype=x.dtype, device=x.device)
        result = pick(result, bound.to(x.dtype))
    return result.clone() if result is x else result
