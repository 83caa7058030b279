"""The sizes at which a program is looked at: typical ones, and where one number passes another."""

import random

from ._sizes import Extreme, Part, Quotient

__all__ = ["LARGE", "apart", "bends", "random_points", "typical", "upper"]

LARGE = 1 << 12  # a size at which programs that differ for large ones do
_MORE_POINTS = 3  # with random sizes, to check


def typical(symbol):
    """The example's size, or a larger one if that is special."""
    if symbol.data:
        return symbol.value
    if symbol.value >= 2:
        return symbol.value
    return int(min(symbol.upper, max(symbol.lower, 7)))


def upper(symbol, high):
    """The largest size: what was asked for, unless the program differs there."""
    return symbol.upper if high >= min(symbol.upper, LARGE) else high


def apart(point, ranges):
    """Sizes that are unlike each other and no multiples of anything, near the example's."""
    found = {}
    for name, (low, high) in ranges.items():
        size = max(point[name], 6)
        while size <= high and (size in found.values() or any(size % n == 0 for n in range(2, size))):
            size += 1
        if low <= size <= high:
            found[name] = size
    return found


def random_points(point, ranges):
    draw = random.Random(0)
    for _ in range(_MORE_POINTS):
        yield {n: draw.randint(low, min(high, point[n] + 60)) for n, (low, high) in ranges.items()}


def bends(planned, point, ranges):
    """Around sizes where the larger or smaller of two numbers becomes the other one."""
    for extreme in {atom for _, _, polynomial in planned for atom in _extremes(polynomial)}:
        for name, (low, high) in ranges.items():

            def first_is_less(size, name=name, extreme=extreme):
                sizes = {**point, name: size}
                return extreme.first.at(sizes) < extreme.second.at(sizes)

            if first_is_less(low) == first_is_less(high):
                continue
            good, bad = low, high
            while bad - good > 1:
                middle = (good + bad) // 2
                good, bad = (middle, bad) if first_is_less(middle) == first_is_less(low) else (good, middle)
            yield from ({name: n} for n in (good - 1, good, bad, bad + 1) if low <= n <= high)


def _extremes(polynomial):
    for names in polynomial.terms:
        for factor in names:
            if isinstance(factor, Extreme):
                yield factor
            elif isinstance(factor, Part):
                yield from _extremes(factor.sum)
            elif isinstance(factor, Quotient):
                yield from _extremes(factor.dividend)
