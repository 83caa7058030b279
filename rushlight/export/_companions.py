"""Sizes without a name that change only together, or by several at once.

Two may have to be equal, one a few more than another or a multiple of it, or one be divisible by a number.
They become places of one symbol (`Place`).
"""

import dataclasses
import math
from typing import Any

from ._align import Specialized, align

MOST_APART = 8  # sizes that follow others
_MOST_TIMES = 4
_MORE = (7, 1, 2, 4, 8)  # by which sizes are changed, to see whether others follow
_DIVISORS = (2, 3, 4, 5, 6, 7, 8, 12, 14, 16, 24, 28, 32, 64)


class Companions:
    """The part of `Dynamics` that finds these: it has the symbols, their places, and traces."""

    symbols: dict
    places: list
    traces: dict
    spaced: set
    trace: Any
    at: Any

    def unite(self):
        """Give hinted sizes that can only change together one symbol."""
        stuck = [n for n, symbol in self.symbols.items() if not symbol.data and not self._changes([n])]
        classes = []
        for name in [n for n in stuck if not self.symbols[n].given]:
            if name not in stuck:
                continue
            members = self._companions(name, stuck) or self._companions(name, self._free())
            if sum(self.symbols[n].given for n in members) < 2:
                classes.append([n for n in members if not any(n in known for known in classes)])
                stuck = [n for n in stuck if n not in members]
        for members in filter(None, classes):
            self._merge(members)

    def _free(self):
        """All sizes without a name: some can change alone, and others not without them."""
        return [n for n, symbol in self.symbols.items() if not (symbol.given or symbol.data)]

    def _companions(self, name, stuck):
        """The sizes that must change with a size that can't change alone, itself among them; none if no
        others help. They change by as much as it does."""
        value = self.symbols[name].value
        dims = {n: {p.dim for p in self.places if p.symbol == n} for n in stuck}
        near = [n for n in stuck if abs(self.symbols[n].value - value) <= MOST_APART]
        for pool in ([n for n in near if self.symbols[n].value == value], near):
            aligned = [n for n in pool if dims[n] & dims[name]]
            pairs = [[name, n] for n in pool if n != name]
            for group in (aligned, *pairs, *([n for n in aligned if n != left] for left in aligned), pool):
                if name in group and len(group) > 1 and self._changes(group):
                    return self._fewest(name, group)
        return []

    def _fewest(self, name, group):
        for other in [n for n in group if n != name]:
            fewer = [n for n in group if n != other]
            if len(fewer) > 1 and self._changes(fewer):
                group = fewer
        return group

    def _changes(self, names):
        """Whether the program runs when sizes change by the same."""
        symbols = [self.symbols[n] for n in names]
        for step in (7, 1, -1):
            sizes = {n: symbol.value + step for n, symbol in zip(names, symbols)}
            if all(max(s.lower, 2) <= size <= s.upper for s, size in zip(symbols, sizes.values())):
                try:
                    self.at(sizes)
                    return True
                except Specialized:
                    continue
        return False

    def _merge(self, members):
        first, *rest = sorted(members, key=lambda n: (not self.symbols[n].given, list(self.symbols).index(n)))
        for name in rest:
            self.symbols[first].required |= self.symbols[name].required
            self._follow(name, first, 1, self.symbols[name].value - self.symbols[first].value)

    def _link(self):
        """Let hinted sizes that cannot change alone follow others; whether some do."""
        before = len(self.symbols)
        for name in [n for n, symbol in reversed(self.symbols.items()) if not symbol.given]:
            if self._changes({name}):  # maybe since another one follows it
                continue
            for base in [n for n in self.symbols if n != name]:
                relation = self._relation(name, base)
                if relation is not None:
                    self._follow(name, base, *relation)
                    break
        return len(self.symbols) < before

    def _relation(self, name, base):
        """(factor, offset) with which a size follows another one: a multiple, equal, or a few more."""
        value, other = self.symbols[name].value, self.symbols[base].value
        difference, (factor, rest) = value - other, divmod(value, max(other, 1))
        found = [(factor, 0)] if rest == 0 and 1 < factor <= _MOST_TIMES else []
        found += [(1, difference)] if abs(difference) <= MOST_APART else []
        for factor, offset in found:
            for size in (other + more for more in _MORE):
                try:
                    self.at({base: size, name: factor * size + offset})
                    return factor, offset
                except Specialized:
                    continue
        return None

    def _follow(self, name, base, factor, offset):
        other, kept = self.symbols.pop(name), self.symbols[base]
        kept.lower = max(kept.lower, -((offset - other.lower) // factor))
        kept.upper = min(kept.upper, _quotient(other.upper - offset, factor))
        for i, place in enumerate(self.places):
            if place.symbol == name:
                times, more = place.factor * factor, place.factor * offset + place.offset
                self.places[i] = place.__class__(place.leaf, place.dim, base, times, more)
        self.traces = {}

    def _space(self):
        """Let hinted sizes that change by several at once be multiples and a rest; whether some do."""
        found = False
        for name in [n for n, symbol in self.symbols.items() if not (symbol.given or symbol.data)]:
            if name in self.spaced or self._alike({name: self.symbols[name].value + 1}):
                continue
            step = self._step(name)
            if step is not None:
                symbol = self.symbols[name]
                root = f"_{name}"
                times, rest = divmod(symbol.value, step)
                self.trace.inputs |= {root}
                lower, asked = (max(-((rest - n) // step), 0) for n in (symbol.lower, symbol.asked_lower))
                upper = _quotient(symbol.upper - rest, step)
                self.symbols[root] = dataclasses.replace(
                    symbol, name=root, value=times, lower=lower, upper=upper, asked_lower=asked
                )
                self._follow(name, root, step, rest)
                self.spaced.add(root)
                found = True
        return found

    def _step(self, name):
        """By how much a size changes at least, if it is a number that sizes in programs are divided by."""
        value, upper = self.symbols[name].value, self.symbols[name].upper
        for step in _DIVISORS:
            if value < step or value + 2 * step > upper:
                break
            sizes = [value + times * step for times in (1, 2, 3)]
            if all(self._alike({name: size}) for size in sizes if size <= upper):
                return step
        return None

    def _alike(self, sizes):
        """Whether the program takes the steps of the example at other sizes; one may lack some that the
        other has."""
        try:
            ours, theirs = self.at({}).graph, self.at(sizes).graph
        except Specialized:
            return False
        for one, other in ((ours, theirs), (theirs, ours)):
            try:
                align(one, other)
                return True
            except Specialized:
                continue
        return False


def _quotient(size, step):
    """Of a size that may be infinite."""
    return size if size == math.inf else size // step
