"""The infinities of integers: larger and smaller than any of them."""

from functools import total_ordering

__all__ = ["IntInfinity", "NegativeIntInfinity", "int_oo"]


@total_ordering
class _Infinite:
    """Compares with numbers by its sign alone."""

    sign: int

    def _as_float(self):
        return self.sign * float("inf")

    __float__ = _as_float

    def __eq__(self, other):
        return self._as_float() == (other._as_float() if isinstance(other, _Infinite) else other)

    def __lt__(self, other):
        return self._as_float() < (other._as_float() if isinstance(other, _Infinite) else other)

    def __hash__(self):
        return hash(self._as_float())


class IntInfinity(_Infinite):
    """Larger than every integer."""

    sign = 1

    def __neg__(self):
        return NegativeIntInfinity()

    def __repr__(self):
        return "int_oo"


class NegativeIntInfinity(_Infinite):
    """Smaller than every integer."""

    sign = -1

    def __neg__(self):
        return int_oo

    def __repr__(self):
        return "-int_oo"


int_oo = IntInfinity()
