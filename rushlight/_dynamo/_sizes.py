"""Sizes that a graph leaves open: numbers explained by them, and numbers that notice what a program asks."""

import math
import operator
import re
from fractions import Fraction
from typing import Any

import rushlight as torch
from rushlight import _C
from rushlight.export._sizes import Polynomial

__all__ = ["Ranges", "Specialized", "TracedSize", "evaluated", "explained", "unified"]

__capture__ = "skip"  # Note [Capture marks]

SMALLEST = 2  # a size of one is repeated along others, so that it takes paths of its own

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[%\w.]+(?:(?<=\d[eE])[-+]\d+)?|.', re.DOTALL)
_WHOLE = re.compile(r"-?\d+")


class Specialized(Exception):
    """The program is for some sizes only; says why."""


# --- numbers that change with the sizes ---------------------------------------------------------------


def explained(column, points):
    """A number at several points (dicts from symbols to sizes) as a polynomial: through the first ones,
    which are the corners of a box, and checked at the others."""
    names = list(points[0])
    corners = 1 << len(names)
    table = {tuple(point.values()): value for point, value in zip(points[:corners], column)}
    sizes = {name: sorted({point[name] for point in points[:corners]}) for name in names}
    found = Polynomial.through(names, sizes, lambda chosen: table[tuple(chosen[n] for n in names)])
    if not found.is_whole() or any(found.at(point) != value for point, value in zip(points, column)):
        raise Specialized(
            f"the program computes {column[0]} from its sizes otherwise than by sums of products"
        )
    return found


def unified(texts, points):
    """The tokens of a text at several points, in lines, with polynomials in place of what changes."""
    rows = [text.splitlines(keepends=True) for text in texts]
    for lines in zip(*rows):
        if len(set(lines)) > 1 and len({_outline(line) for line in lines}) > 1:
            raise Specialized(f"the program takes another path at other sizes, such as `{lines[0].strip()}`")
    if len({len(lines) for lines in rows}) > 1:
        raise Specialized("the program takes a longer path at other sizes")
    return [_unified_line(lines, points) for lines in zip(*rows)]


def _outline(line):
    return tuple("0" if _WHOLE.fullmatch(token) else token for token in _TOKEN.findall(line))


def _unified_line(lines, points):
    columns = zip(*map(_TOKEN.findall, lines))
    return [
        column[0] if len(set(column)) == 1 else explained(list(map(int, column)), points)
        for column in columns
    ]


def evaluated(lines, point):
    """The text that unified lines are at a point."""
    return "".join(t if isinstance(t, str) else str(t.at(point)) for line in lines for t in line)


# --- what a program asks of sizes ---------------------------------------------------------------------


class Ranges:
    """How far sizes may go for a program to take the path that it took at some sizes."""

    def __init__(self, values):
        self.values = values
        self.bounds = {name: (SMALLEST, math.inf) for name in values}
        self.observer: Any = None  # of the program

    def stop(self, reason):
        """End the program: what comes would be for these sizes only."""
        self.observer.interrupt(reason)

    def require(self, polynomial):
        """Narrow the ranges so that a polynomial, which is so here, never is below zero."""
        terms = polynomial.terms
        if sum(min(self._reach(names, c)) for names, c in terms.items()) >= 0:
            return
        symbols = frozenset().union(*terms)
        slope = terms.get(symbols)
        if len(symbols) != 1 or slope is None:
            self.stop("the program compares several sizes")
        (name,) = symbols
        edge = Fraction(-terms.get(frozenset(), 0)) / slope
        low, high = self.bounds[name]
        narrowed = (max(low, math.ceil(edge)), high) if slope > 0 else (low, min(high, math.floor(edge)))
        self.bounds[name] = narrowed

    def _reach(self, names, coefficient):
        lows, highs = (math.prod(self.bounds[n][end] for n in names) for end in (0, 1))
        return coefficient * lows, coefficient * highs

    def compare(self, difference, relation):
        """Whether ``relation(difference, 0)`` holds; from now on it has the same answer at all sizes."""
        value = difference.at(self.values)
        answer = relation(value, 0)
        if not any(difference.terms.keys()):
            return answer
        if relation in (operator.eq, operator.ne):
            if value == 0:
                self.stop("the program asks whether a size is what it is")
            below, apart = value < 0, True
        else:
            below = answer == (relation in (operator.lt, operator.le))
            apart = answer == (relation in (operator.lt, operator.gt))
        side = _negated(difference) if below else difference
        self.require(_plus(side, -1) if apart else side)
        return answer


def _plus(polynomial, number):
    return _sum(polynomial, Polynomial({frozenset(): Fraction(number)}))


def _sum(a, b):
    return Polynomial({key: a.terms.get(key, 0) + b.terms.get(key, 0) for key in {*a.terms, *b.terms}})


def _negated(polynomial):
    return Polynomial({names: -c for names, c in polynomial.terms.items()})


def _product(a, b):
    """None where a size would be multiplied by itself."""
    terms: dict = {}
    for names, c in a.terms.items():
        for others, d in b.terms.items():
            if names & others:
                return None
            terms[names | others] = terms.get(names | others, 0) + c * d
    return Polynomial(terms)


class TracedSize(torch.SymInt):
    """A size at which a program is traced, and what it is at all sizes.

    Operators take its value. Sums and products are such numbers again, comparisons narrow the range of sizes
    that the trace is for. All else would make the trace depend on the number, and ends it: as it is no int,
    nothing gets at its value by another way.
    """

    __slots__ = "polynomial", "ranges", "value"

    def __init__(self, polynomial, ranges):
        self.polynomial, self.ranges = polynomial, ranges
        self.value = int(polynomial.at(ranges.values))

    @classmethod
    def of(cls, size, ranges):
        """A number or a polynomial as a size."""
        return cls(size, ranges) if isinstance(size, Polynomial) else size

    def _made(self, polynomial):
        if not any(polynomial.terms.keys()):
            return int(polynomial.terms.get(frozenset(), 0))
        return TracedSize(polynomial, self.ranges)

    def __add__(self, other):
        if not _is_whole(other):
            return self._with(other, "adds to")
        return self._made(_sum(self.polynomial, _polynomial(other)))

    __radd__ = __add__

    def __neg__(self):
        return self._made(_negated(self.polynomial))

    def __pos__(self):
        return self

    def __sub__(self, other):
        return self + -other if _is_whole(other) else self._with(other, "subtracts from")

    def __rsub__(self, other):
        return -self + other if _is_whole(other) else self._with(other, "subtracts")

    def __mul__(self, other):
        if not _is_whole(other):
            return self._with(other, "multiplies")
        product = _product(self.polynomial, _polynomial(other))
        return self._ask("squares") if product is None else self._made(product)

    __rmul__ = __mul__

    def __floordiv__(self, other):
        terms = self.polynomial.terms
        if type(other) is not int or not other or any(c % other for c in terms.values()):
            return self._with(other, "divides")
        return self._made(Polynomial({names: c / other for names, c in terms.items()}))

    def __mod__(self, other):
        terms = self.polynomial.terms
        if type(other) is not int or not other or any(c % other for names, c in terms.items() if names):
            return self._with(other, "divides")
        return int(terms.get(frozenset(), 0)) % other

    def __bool__(self):
        return self != 0

    def _ask(self, what):
        self.ranges.stop(f"the program {what} a size")

    def _with(self, other, what):
        """Tensors do with it what they do with numbers; nothing else may."""
        return NotImplemented if hasattr(other, "__torch_function__") else self._ask(what)


def _is_whole(number):
    return isinstance(number, (int, TracedSize))


def _polynomial(number):
    if isinstance(number, TracedSize):
        return number.polynomial
    return Polynomial({frozenset(): Fraction(int(number))})


def _comparison(relation):
    def compare(self, other):
        if not _is_whole(other):
            return self._ask("compares") if isinstance(other, float) else NotImplemented
        return self.ranges.compare(_sum(self.polynomial, _negated(_polynomial(other))), relation)

    return compare


def _refusal(what):
    def refuse(self, *others):
        return self._with(others[0], what) if others else self._ask(what)

    return refuse


def _unseen(method):
    """The method, without the program's observer seeing what it does."""

    def run(self, *others):
        observer = self.ranges.observer
        before, observer.paused = observer.paused, True
        try:
            return method(self, *others)
        finally:
            observer.paused = before

    return run


_ARITHMETIC = "add radd neg pos sub rsub mul rmul floordiv mod bool"
_REFUSED = {
    "divides": "truediv rtruediv rfloordiv rmod divmod rdivmod",
    "takes a power of": "pow rpow",
    "takes the bits of": "and rand or ror xor rxor lshift rlshift rshift rrshift invert",
    "rounds": "round trunc floor ceil",
    "converts": "int float abs str repr format hash index",
}


def _complete():
    """Give the class its comparisons, and what it refuses to do."""
    for name in ("lt", "le", "eq", "ne", "gt", "ge"):
        setattr(TracedSize, f"__{name}__", _unseen(_comparison(getattr(operator, name))))
    for told, names in _REFUSED.items():
        for name in names.split():
            setattr(TracedSize, f"__{name}__", _unseen(_refusal(told)))
    for name in _ARITHMETIC.split():
        setattr(TracedSize, f"__{name}__", _unseen(getattr(TracedSize, f"__{name}__")))


_complete()
_C._set_traced_size(TracedSize)
