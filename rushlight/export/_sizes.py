"""Numbers of a graph as functions of the sizes of its inputs, and the nodes that compute them.

Sizes are plain numbers while a program runs, so a trace holds the example's. The numbers in it that change
with the sizes are found by tracing at others, and explained as sums of products of sizes, of quotients
rounded down, and of the larger or smaller of two such numbers.
"""

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import rushlight as torch
from rushlight._subclasses.size_numbers import named

SIZE = torch.ops.aten.sym_size.int  # type: ignore[attr-defined]  # by which a graph reads a size
_MOST_SYMBOLS = 4  # that a number may depend on


class Polynomial:
    """A sum of products: frozenset of names or of functions of sizes -> coefficient."""

    def __init__(self, terms):
        self.terms = {names: c for names, c in terms.items() if c}

    @classmethod
    def through(cls, names, sizes, value_at):
        """The one that is linear in each symbol and takes the given values at the corners of the box."""
        if not names:
            return cls({frozenset(): Fraction(value_at({}))})
        first, rest = names[0], names[1:]
        low, high = sizes[first]
        at_low = cls.through(rest, sizes, lambda chosen: value_at({**chosen, first: low}))
        at_high = cls.through(rest, sizes, lambda chosen: value_at({**chosen, first: high}))
        terms = dict(at_low.terms)
        for key in {*at_low.terms, *at_high.terms}:
            slope = (at_high.terms.get(key, 0) - at_low.terms.get(key, 0)) / Fraction(high - low)
            terms[key] = terms.get(key, 0) - slope * low
            terms[key | {first}] = terms.get(key | {first}, 0) + slope
        return cls(terms)

    def at(self, values):
        return sum(c * math.prod(_value(n, values) for n in names) for names, c in self.terms.items())

    def number(self, values):
        """The whole number at some sizes."""
        return int(self.at(values))

    def build(self, builder):
        """The node that computes it."""
        return builder.sum(self)

    def sized(self, symbols):
        """The number at the symbols' values, which knows what it is of the symbols."""
        return _Sums(lambda name: named(name, symbols[name].value), _call).sum(self)

    def is_whole(self):
        return all(c.denominator == 1 for c in self.terms.values())

    def whole(self):
        """The same with whole coefficients: a common divisor becomes a quotient."""
        divisor = math.lcm(*(Fraction(c).denominator for c in self.terms.values()))
        if divisor == 1:
            return self
        return Polynomial({frozenset({Quotient(self.times(divisor), divisor)}): Fraction(1)})

    def times(self, factor):
        return Polynomial({names: c * factor for names, c in self.terms.items()})

    def __eq__(self, other):
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self):
        return hash(frozenset(self.terms.items()))

    def __str__(self):
        parts = []
        for names, c in _ordered(self):
            factors = [str(c)] * (c != 1 or not names) + sorted(map(str, names))
            parts.append("*".join(factors))
        return " + ".join(parts) or "0"


def constant(number):
    return Polynomial({frozenset(): Fraction(number)})


def _value(factor, values):
    return values[factor] if isinstance(factor, str) else factor.at(values)


def _ordered(polynomial):
    return sorted(polynomial.terms.items(), key=lambda item: (-len(item[0]), sorted(map(str, item[0]))))


@dataclass(frozen=True)
class Quotient:
    """A number divided by another, rounded down."""

    dividend: Polynomial
    divisor: int

    def at(self, values):
        return self.dividend.at(values) // self.divisor

    def __str__(self):
        return f"(({self.dividend}) // {self.divisor})"

    def build(self, builder):
        return builder.call(operator.floordiv, builder.sum(self.dividend), self.divisor)


@dataclass(frozen=True)
class Power:
    """A size times itself."""

    name: str
    exponent: int

    def at(self, values):
        return values[self.name] ** self.exponent

    def __str__(self):
        return f"{self.name}**{self.exponent}"

    def build(self, builder):
        made = size = builder.source(self.name)
        for _ in range(self.exponent - 1):
            made = builder.call(operator.mul, made, size)
        return made


@dataclass(frozen=True)
class Extreme:
    """The larger or the smaller of two numbers."""

    choose: Any  # max or min
    first: Polynomial
    second: Polynomial

    def at(self, values):
        return self.choose(self.first.at(values), self.second.at(values))

    def __str__(self):
        return f"{self.choose.__name__}({self.first}, {self.second})"

    def build(self, builder):
        function = torch.sym_max if self.choose is max else torch.sym_min
        return builder.call(function, builder.sum(self.first), builder.sum(self.second))


@dataclass(frozen=True)
class Part:
    """A sum that is a factor of others."""

    sum: Polynomial

    def at(self, values):
        return self.sum.at(values)

    def __str__(self):
        return f"({self.sum})"

    def build(self, builder):
        return builder.sum(self.sum)


def _call(function, *operands):
    return function(*operands)


# --- nodes ------------------------------------------------------------------------------------------


class _Sums:
    """Builds what a polynomial says, by ``source(symbol)`` and ``call(function, *operands)``."""

    def __init__(self, source, call):
        self.source, self.call = source, call

    def sum(self, polynomial):
        total = None
        for names, coefficient in _ordered(polynomial):
            term = self._product(sorted(names, key=str), int(coefficient))
            if total is not None and isinstance(term, int) and term < 0:
                total = self.call(operator.sub, total, -term)
            else:
                total = term if total is None else self.call(operator.add, total, term)
        return 0 if total is None else total

    def _product(self, names, coefficient):
        value = None
        for name in names:
            factor = self.source(name) if isinstance(name, str) else name.build(self)
            value = factor if value is None else self.call(operator.mul, value, factor)
        if value is None:
            return coefficient
        return value if coefficient == 1 else self.call(operator.mul, value, coefficient)


class Builder(_Sums):
    """Nodes that compute numbers, each once. A node's ``val`` is the number in the example."""

    def __init__(self, graph, source_of):
        super().__init__(self._source, self._call)
        self.graph, self._source_of = graph, source_of
        self.sources, self.made = {}, {}

    def build(self, polynomial, user):
        with self.graph.inserting_before(user):
            return polynomial.build(self)

    def _source(self, name):
        if name not in self.sources:
            self.sources[name] = self._source_of(name)
        return self.sources[name]

    def _call(self, function, *operands):
        """A node, or a number where no operand is one."""
        if not any(isinstance(operand, torch.fx.Node) for operand in operands):
            return function(*operands)
        key = function, operands
        if key not in self.made:
            node = self.graph.call_function(function, operands)
            values = [v.meta["val"] if isinstance(v, torch.fx.Node) else v for v in operands]
            node.meta["val"] = function(*values)
            self.made[key] = node
        return self.made[key]
