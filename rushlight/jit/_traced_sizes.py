"""Sizes in a trace: numbers that remember the text that computes them, through arithmetic.

``x.view(x.size(0) // 2, -1)`` is recorded as it stands. Where a size becomes a number of Python's own or
decides a branch, the trace keeps what it was, and warns."""

import math
import operator
from typing import Any

from rushlight.jit._tracer_warnings import warn_of_size

__all__ = ["TracedFloat", "TracedSize", "plain_number", "text_of_number"]


def text_of_number(number):
    if isinstance(number, (TracedSize, TracedFloat)):
        return number.text
    return repr(number) if number - number == 0 else f"float({str(number)!r})"


def _followed(value, text):
    """A result of arithmetic; complex numbers are not followed."""
    kind = {int: TracedSize, float: TracedFloat}.get(type(value))
    return value if kind is None else kind(value, text)


def plain_number(number):
    return number.kind.__pos__(number) if isinstance(number, _Traced) else number


def _operation(symbol, compute, reflected):
    def operation(self, other):
        if not isinstance(other, (int, float)) or isinstance(other, bool):
            return NotImplemented
        left, right = (other, self) if reflected else (self, other)
        text = f"({text_of_number(left)} {symbol} {text_of_number(right)})"
        return _followed(compute(plain_number(left), plain_number(right)), text)

    return operation


def _comparison(base, name):
    def operation(self, other):
        value = getattr(base, name)(self, other)
        if value is not NotImplemented:
            warn_of_size("Python boolean")
        return value

    return operation


class _Traced:
    """What both kinds of numbers have."""

    kind: Any
    text: str

    def __new__(cls, value, text):
        made = cls.kind.__new__(cls, value)
        made.text = text
        return made

    def __reduce__(self):
        return self.kind, (plain_number(self),)

    def __deepcopy__(self, memo):
        return self

    def __neg__(self):
        return _followed(-plain_number(self), f"(-{self.text})")

    def __bool__(self):
        warn_of_size("Python boolean")
        return bool(plain_number(self))

    def __int__(self):
        warn_of_size("Python integer")
        return int(plain_number(self))

    def __float__(self):
        warn_of_size("Python float")
        return float(plain_number(self))

    def __floor__(self):
        return TracedSize(math.floor(plain_number(self)), f"int({self.text} // 1)")

    def __ceil__(self):
        return TracedSize(math.ceil(plain_number(self)), f"(-int((-{self.text}) // 1))")


class TracedSize(_Traced, int):
    """A size of a tensor, or an integer that was computed from sizes."""

    kind = int
    __hash__ = int.__hash__


class TracedFloat(_Traced, float):
    """A number that was computed from sizes."""

    kind = float
    __hash__ = float.__hash__


_SYMBOLS = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow"}
for _kind in (TracedSize, TracedFloat):
    for _symbol, _name in _SYMBOLS.items():
        _compute = getattr(operator, _name)
        setattr(_kind, f"__{_name}__", _operation(_symbol, _compute, False))
        setattr(_kind, f"__r{_name}__", _operation(_symbol, _compute, True))
    for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(_kind, f"__{_name}__", _comparison(_kind.kind, f"__{_name}__"))
