"""Closed ranges of numbers."""

from dataclasses import dataclass
from typing import Any

from rushlight.utils._sympy.numbers import int_oo

__all__ = ["ValueRangeError", "ValueRanges"]


class ValueRangeError(RuntimeError):
    """A range whose lower end is above its upper one."""


@dataclass(frozen=True)
class ValueRanges:
    """All numbers from `lower` to `upper`, both included."""

    lower: Any
    upper: Any

    def __post_init__(self):
        if self.lower > self.upper:
            raise ValueRangeError(f"Invalid ranges [{self.lower}:{self.upper}]")

    @staticmethod
    def unknown_int():
        return ValueRanges(-int_oo, int_oo)

    @staticmethod
    def wrap(value):
        return value if isinstance(value, ValueRanges) else ValueRanges(value, value)

    def is_singleton(self):
        return self.lower == self.upper

    def __contains__(self, value):
        other = ValueRanges.wrap(value)
        return bool(self.lower <= other.lower and other.upper <= self.upper)

    def __and__(self, other):
        return ValueRanges(max(self.lower, other.lower), min(self.upper, other.upper))

    def __or__(self, other):
        return ValueRanges(min(self.lower, other.lower), max(self.upper, other.upper))
