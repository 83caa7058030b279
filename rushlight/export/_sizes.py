"""From traces at several sizes, one graph for all sizes.

Sizes are plain numbers while a program runs, so a trace holds the example's. The numbers in it that change
with the sizes are found by tracing at others, and explained as sums of products of them. What cannot be
explained so makes the program depend on the example, which is an error that names the operator.
"""

import itertools
import math
import operator
from fractions import Fraction

from rushlight.fx.node import Node
from rushlight.utils import _pytree as pytree

from .dynamic_shapes import UserError

MOST_SYMBOLS = 4
_LARGE = 1 << 12
_LAYOUT = frozenset("alias clone contiguous detach reshape squeeze unsqueeze _unsafe_view view".split())
_STEPS = (5, 12)  # how far the further sizes lie from the example's


def sizes_to_try(symbols):
    """Assignments: all corners of a box, and one beyond them to check."""
    if len(symbols) > MOST_SYMBOLS:
        raise UserError(
            f"export: at most {MOST_SYMBOLS} sizes may change independently, got {sorted(symbols)}; give "
            "sizes that are equal the same Dim"
        )
    others = {name: _other_sizes(symbol) for name, symbol in symbols.items()}
    names = list(symbols)
    corners = [
        dict(zip(names, choice))
        for choice in itertools.product(*((symbols[n].value, others[n][0]) for n in names))
    ]
    return corners, {n: others[n][1] for n in names}


def _other_sizes(symbol):
    """Two more sizes within the range, above the example's if there is room."""
    found = [symbol.value + step for step in _STEPS if symbol.value + step <= symbol.upper]
    if len(found) < 2:
        low, high = max(symbol.lower, 1), min(symbol.upper, symbol.value + _STEPS[-1])
        found = [n for n in range(int(high), int(low) - 1, -1) if n != symbol.value][:2]
    if len(found) < 2:
        raise UserError(
            f"export: the range [{symbol.lower}, {symbol.upper}] of {symbol.name} has too few sizes to be "
            "dynamic; leave it static"
        )
    return found


class Polynomial:
    """A sum of products of symbols: frozenset of names -> coefficient."""

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
        return sum(c * math.prod(values[n] for n in names) for names, c in self.terms.items())

    def is_whole(self):
        return all(c.denominator == 1 for c in self.terms.values())


def _leaves(node):
    return pytree.tree_leaves((node.args, node.kwargs))


def _same(a, b):
    if isinstance(a, Node) and isinstance(b, Node):
        return a.name == b.name
    return type(a) is type(b) and (a == b or (a != a and b != b))


def _check_alike(base, other):
    """Raise unless both graphs are the same steps."""
    ours, theirs = list(base.nodes), list(other.nodes)
    for a, b in itertools.zip_longest(ours, theirs):
        alike = a is not None and b is not None and (a.op, a.target, a.name) == (b.op, b.target, b.name)
        if not alike or len(_leaves(a)) != len(_leaves(b)):
            where = a if a is not None else b
            raise _Specialized(f"takes another path at other sizes, from `{where.format_node()}` on")


class _Specialized(Exception):
    """The program depends on the example's sizes; says how."""


def plan(base, traces, check, check_sizes, symbols):
    """What to replace in `base`: (node, index of the argument's leaf, polynomial); nothing is changed yet.

    ``traces`` are (sizes, graph) for the corners, ``check`` is a graph at other sizes.
    """
    for graph in (*(graph for _, graph in traces), check):
        _check_alike(base, graph)
    found = []
    for node, *row in zip(base.nodes, *(graph.nodes for _, graph in traces), check.nodes):
        for i, column in enumerate(zip(*(_leaves(n) for n in row))):
            if not all(_same(column[0], value) for value in column):
                found.append((node, i, _explain(node, column, traces, check_sizes, symbols)))
    return found


def _work(graph):
    """The nodes that do more than lay the same elements out in another way."""
    return [n for n in graph.nodes if getattr(n.target, "_opname", "") not in _LAYOUT]


def verify(planned, base, graph, sizes, only_work=False):
    """Raise unless a trace at further sizes is what the plan says.

    ``only_work`` lets layouts differ: at size 1 a view often does what takes a copy at others.
    """
    rows = zip(base.nodes, graph.nodes)
    if only_work:
        ours, theirs = _work(base), _work(graph)
        if [(n.op, n.target) for n in ours] != [(n.op, n.target) for n in theirs]:
            raise _Specialized(f"takes another path at {sizes}")
        rows = zip(ours, theirs)
    else:
        _check_alike(base, graph)
    expected = {(node, i): polynomial for node, i, polynomial in planned}
    for node, other in rows:
        for i, (value, theirs) in enumerate(zip(_leaves(node), _leaves(other))):
            if only_work and isinstance(value, Node) and isinstance(theirs, Node):
                continue
            polynomial = expected.get((node, i))
            value = value if polynomial is None else int(polynomial.at(sizes))
            if not _same(value, theirs):
                raise _Specialized(f"computes {theirs!r} at {sizes} in `{node.format_node()}`, not {value!r}")


def ends(symbol):
    """The smallest and a large size in the range, where programs like to differ."""
    large = symbol.upper if symbol.upper <= _LARGE else max(_LARGE, symbol.value)
    return max(symbol.lower, 1), int(large)


def apply(planned, graph, source_of):
    """Replace numbers by what they are; ``source_of(symbol)`` makes a node for a symbol's size."""
    builder = _Builder(graph, source_of)
    for node, i, polynomial in planned:
        leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
        leaves[i] = builder.build(polynomial, node, leaves[i])
        node.args, node.kwargs = pytree.tree_unflatten(leaves, spec)


def _explain(node, column, traces, check_sizes, symbols):
    """The polynomial that an argument is."""
    if not all(type(v) is int for v in column):
        raise _Specialized(f"holds {column[0]!r} of the example in `{node.format_node()}`")
    names = list(symbols)
    table = {tuple(sizes[n] for n in names): value for (sizes, _), value in zip(traces, column)}
    corners = {n: sorted({sizes[n] for sizes, _ in traces}) for n in names}
    found = Polynomial.through(names, corners, lambda chosen: table[tuple(chosen[n] for n in names)])
    if not found.is_whole() or found.at(check_sizes) != column[-1]:
        raise _Specialized(
            f"computes {column[0]} in `{node.format_node()}`, which is no sum of products of {names}"
        )
    return found


class _Builder:
    """Nodes that compute polynomials, each once."""

    def __init__(self, graph, source_of):
        self.graph, self.source_of = graph, source_of
        self.made, self.sources = {}, {}

    def build(self, polynomial, user, example):
        key = frozenset(polynomial.terms.items())
        if key not in self.made:
            with self.graph.inserting_before(user):
                self.made[key] = self._sum(polynomial)
            self.made[key].meta["val"] = example
        return self.made[key]

    def _source(self, name):
        if name not in self.sources:
            self.sources[name] = self.source_of(name)
        return self.sources[name]

    def _sum(self, polynomial):
        total = None
        terms = sorted(polynomial.terms.items(), key=lambda item: (-len(item[0]), sorted(item[0])))
        for names, coefficient in terms:
            term = self._product(sorted(names), int(coefficient))
            total = term if total is None else self.graph.call_function(operator.add, (total, term))
        return total

    def _product(self, names, coefficient):
        value = None
        for name in names:
            source = self._source(name)
            value = source if value is None else self.graph.call_function(operator.mul, (value, source))
        if value is None:
            return coefficient
        return value if coefficient == 1 else self.graph.call_function(operator.mul, (value, coefficient))
