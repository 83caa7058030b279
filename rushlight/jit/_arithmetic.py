"""Arithmetic of scripts where it is not Python's: numbers are those of C++, so nothing but division of whole
numbers fails, whole numbers wrap at 64 bits, and powers and roundings are floats.

Values of other types, tensors above all, go through Python's operators as they are."""

from __future__ import annotations

import math
import operator
from typing import Any

from rushlight.jit._percent import percent

__all__ = ["CALLS", "INPLACE", "MATH", "OPERATORS", "in_script", "rounded", "whole", "wrapped"]

_NUMBERS = (bool, int, float)
_LOWEST = -(2**63)  # what a float that is no number of 64 bits becomes
_END = 2**63


def wrapped(value: Any) -> Any:
    """What is left of a whole number in 64 bits; other values as they are."""
    if type(value) is not int or _LOWEST <= value < _END:
        return value
    return (value + _END) % (2 * _END) - _END


def added(left: Any, right: Any) -> Any:
    result = left + right
    return result if type(result) is not int or _LOWEST <= result < _END else wrapped(result)


def subtracted(left: Any, right: Any) -> Any:
    result = left - right
    return result if type(result) is not int or _LOWEST <= result < _END else wrapped(result)


def multiplied(left: Any, right: Any) -> Any:
    result = left * right
    return result if type(result) is not int or _LOWEST <= result < _END else wrapped(result)


def shifted(left: Any, right: Any) -> Any:
    """A shift to the left; as processors do it, by the last six bits of the second number."""
    if type(left) in (bool, int) and type(right) in (bool, int):
        return wrapped(left << (right & 63))
    return left << right


def negated(value: Any) -> Any:
    return wrapped(-value)


def divided(left: Any, right: Any) -> Any:
    try:
        return left / right
    except ZeroDivisionError:
        if isinstance(left, complex) or isinstance(right, complex):
            raise
        return _by_zero(float(left), float(right))


def _by_zero(left, right):
    if left == 0 or left != left:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def floor_divided(left: Any, right: Any) -> Any:
    if not (type(left) in _NUMBERS and type(right) in _NUMBERS):
        return left // right
    if type(left) is not float and type(right) is not float:
        if right == 0:
            raise ZeroDivisionError("division by 0")
        return left // right
    quotient = divided(left, right)
    return float(math.floor(quotient)) if quotient and math.isfinite(quotient) else quotient


def remainder(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        return percent(left, right)
    if float not in (type(left), type(right)) or not (type(left) in _NUMBERS and type(right) in _NUMBERS):
        return left % right
    return _fmod(right + _fmod(left, right), right)


def _fmod(left, right):
    try:
        return math.fmod(left, right)
    except ValueError:
        return math.nan


def quotient_and_remainder(left: Any, right: Any) -> Any:
    if right == 0 and type(left) in _NUMBERS and type(right) in _NUMBERS:
        whole_numbers = float not in (type(left), type(right))
        said = "integer division or modulo by zero" if whole_numbers else "float divmod()"
        raise RuntimeError(f"ZeroDivisionError: {said}")
    return divmod(left, right)


def powered(left: Any, right: Any) -> Any:
    """A float, of whole numbers too."""
    if not (type(left) in _NUMBERS and type(right) in _NUMBERS):
        return left**right
    if left == 0 and right < 0:
        raise ZeroDivisionError("0.0 cannot be raised to a negative power")
    try:
        return math.pow(left, right)
    except OverflowError:
        return -math.inf if left < 0 and right % 2 == 1 else math.inf
    except ValueError:
        return math.nan


def rounded(value: Any, *digits: Any) -> Any:
    if digits or type(value) not in _NUMBERS:
        return round(value, *digits)
    return math.copysign(round(value), value) if math.isfinite(value) else value


def whole(value: Any = 0, *base: Any) -> int:
    if type(value) is float and not -(2.0**63) <= value < 2.0**63:
        return _LOWEST
    return int(value, *base)


def _extreme(function, order):
    def extreme(*values: Any, **words: Any) -> Any:
        if words or len(values) != 2 or not (type(values[0]) in _NUMBERS and type(values[1]) in _NUMBERS):
            return function(*values, **words)
        first, second = values
        found = first if order(first, second) else second
        return float(found) if float in (type(first), type(second)) else found

    return extreme


def _inplace(function, inplace):
    """``x /= y``: a tensor is written to."""

    def assigned(left: Any, right: Any) -> Any:
        return function(left, right) if type(left) in (*_NUMBERS, str) else inplace(left, right)

    return assigned


def _c(function, at_pole=math.nan):
    """A function of `math` as C++ has it: NaN outside of its domain, ``at_pole`` where it has a pole,
    infinity where it overflows."""

    def of_c(*values: float) -> float:
        try:
            return function(*values)
        except OverflowError:
            return math.copysign(math.inf, values[0]) if function in _ODD else math.inf
        except ValueError:
            return at_pole if values[0] == _POLES.get(function) else math.nan

    return of_c


_ODD = (math.sinh, math.ldexp)
_POLES = {math.log: 0, math.log10: 0, math.log1p: -1, math.gamma: 0}


def _atanh(value):
    return math.copysign(math.inf, value) if value in (1, -1) else _c(math.atanh)(value)


def _lgamma(value):
    try:
        return math.lgamma(value)
    except ValueError:
        return math.inf


def _logarithm(value, *base):
    if not base:
        return _c(math.log, -math.inf)(value)
    return divided(_logarithm(value), _logarithm(base[0]))


def _to_whole(function):
    def made_whole(value: Any) -> Any:
        if type(value) is float and not math.isfinite(value):
            raise RuntimeError(f"Cannot convert float {value} to integer")
        return function(value)

    return made_whole


# Functions of `math` by their names: those that fail nowhere are not among them.
MATH = {
    **{
        name: _c(getattr(math, name))
        for name in "sqrt exp expm1 acos asin acosh sin cos tan sinh cosh ldexp remainder degrees".split()
    },
    "log": _logarithm,
    "log10": _c(math.log10, -math.inf),
    "log1p": _c(math.log1p, -math.inf),
    "gamma": _c(math.gamma, math.inf),
    "lgamma": _lgamma,
    "atanh": _atanh,
    "pow": powered,
    "fmod": _fmod,
    "floor": _to_whole(math.floor),
    "ceil": _to_whole(math.ceil),
}

# Built-in functions that scripts compute in another way.
CALLS: dict = {
    "round": rounded,
    "divmod": quotient_and_remainder,
    "int": whole,
    "abs": lambda value: wrapped(abs(value)),
    "sum": lambda *values: wrapped(sum(*values)),
    "pow": powered,
    "max": _extreme(max, operator.gt),
    "min": _extreme(min, operator.lt),
}

# Operators by their nodes' names, and those of augmented assignments.
OPERATORS: dict = {
    "Add": added,
    "Sub": subtracted,
    "Mult": multiplied,
    "LShift": shifted,
    "USub": negated,
    "Div": divided,
    "FloorDiv": floor_divided,
    "Mod": remainder,
    "Pow": powered,
}
INPLACE: dict = {
    "Add": _inplace(added, operator.iadd),
    "Sub": _inplace(subtracted, operator.isub),
    "Mult": _inplace(multiplied, operator.imul),
    "LShift": _inplace(shifted, operator.ilshift),
    "Div": _inplace(divided, operator.itruediv),
    "Mod": _inplace(remainder, operator.imod),
    "Pow": _inplace(powered, operator.ipow),
}


def in_script(name: str, value: Any) -> Any:
    """What a function of `math` is inside of scripts."""
    space, _, last = name.partition(".")
    return MATH.get(last, value) if space == "math" else value
