"""What would make dynamic sizes such as a program allows, in the form in which PyTorch suggests it.

Where a program does not run for the sizes that were asked for, it is looked at as if nothing had been asked
(`Dim.AUTO`). What hangs together then, and in which ranges, is the suggestion.
"""

import ast
import dataclasses
import math
import re

from ._dynamics import Dynamics
from .dynamic_shapes import Dim, UserError

_TITLE = "Suggested fixes:"


def settled(trace, symbols, places, computation):
    """The sizes of a program, and what `Dynamics.settle` gives; an error says what to ask for instead."""
    asked, where = {name: dataclasses.replace(s) for name, s in symbols.items()}, list(places)
    dynamics = Dynamics(trace, symbols, places, computation)
    try:
        return dynamics, dynamics.settle()
    except UserError as error:
        if any(symbol.data for symbol in asked.values()):
            raise
        found = _Suggestions(trace, asked, places, where, computation).lines()
        if not found:
            raise
        names, reasons, fixes = zip(*found)
        told = ", ".join(n for n, r in zip(names, reasons) if r)
        what = re.sub(r"^Constraints violated \(.*?\)", f"Constraints violated ({told})", str(error))
        text = "\n".join((*("  - " + r for r in reasons if r), "", _TITLE, *(f"  {fix}" for fix in fixes)))
        raise UserError(f"{what}\n{text}\n") from error.__cause__


class _Suggestions:
    """``used`` is the list of places that traces follow, which were ``places`` at first."""

    def __init__(self, trace, asked, used, places, computation):
        self.trace, self.asked, self.used, self.computation = trace, asked, used, computation
        self.places = places

    def lines(self):
        """(name, why, what to write) for each name that should be another one."""
        free = {name: self._free(name, symbol.value) for name, symbol in self.asked.items()}
        try:
            found, places = self._settled(free, self.places)
        except Exception:
            return []  # the error stands alone
        found, places = self._renamed(free, found, places)
        new = [(name, "", f"{name} = {self._dim(found[name])!r}") for name in found if name not in free]
        given = dict(zip(self._names(), zip(self.places, places)))
        names = [name for name, symbol in self.asked.items() if symbol.given and name in given]
        told = [self._line(name, given[name], found) for name in names]
        return new + [line for line in told if line is not None]

    def _renamed(self, free, found, places):
        """Roots that were found are named after the first size that follows them."""
        names: dict = {}
        for name, at in zip(self._names(), places):
            if at.symbol in found and at.symbol not in free:
                names.setdefault(at.symbol, f"_{name}")
        found = {names.get(n, n): dataclasses.replace(s, name=names.get(n, n)) for n, s in found.items()}
        return found, [dataclasses.replace(p, symbol=names.get(p.symbol, p.symbol)) for p in places]

    def _names(self):
        return [place.symbol for place in self.places]

    def _free(self, name, value):
        """A size of which nothing was asked."""
        symbol = next(iter(self.asked.values()))
        unasked = {"required": False, "given": False, "min_given": False, "max_given": False}
        return dataclasses.replace(
            symbol, name=name, value=value, lower=2, upper=math.inf, asked_lower=2, **unasked
        )

    def _settled(self, symbols, places):
        """({name: symbol} of the sizes that may change, all places)."""
        *_, found, _ = self._dynamics(symbols, places).settle()
        return found, list(self.used)

    def _dynamics(self, symbols, places):
        self.used[:] = places
        names = {place.symbol for place in places}
        kept = {name: dataclasses.replace(s) for name, s in symbols.items() if name in names}
        return Dynamics(self.trace, kept, self.used, self.computation)

    @staticmethod
    def _dim(symbol, low=0, high=math.inf):
        """The definition with the range that holds, within another one."""
        low = max(low, symbol.lower if symbol.lower > 2 else 0)
        high = min(high, symbol.upper)
        return Dim(symbol.name, min=low if low > 2 else 2, max=None if high == math.inf else int(high))

    def _line(self, name, places, found):
        (before, after), asked = places, self.asked[name]
        if after.symbol not in found:
            why = f"are valid because {name} was inferred to be a constant ({asked.value})."
            return name, f"Not all values of {name} in the specified range {why}", f"{name} = {asked.value}"
        if after.symbol == name:
            dim = self._dim(found[name], asked.lower, asked.upper)
            if dim.min <= max(asked.lower, 2) and dim.max >= asked.upper:
                return None
            ends = f"{dim.min} <= {name}" if dim.max == math.inf else f"{dim.min} <= {name} <= {dim.max}"
            why = f"Not all values of {name} in the specified range satisfy the generated guard {ends}."
            return name, why, f"{name} = {dim!r}"
        factor, rest = divmod(after.factor, before.factor)
        offset, other = divmod(after.offset - before.offset, before.factor)
        if rest or other:
            return None
        root = Dim(after.symbol)
        relation = repr(root * factor + offset) if (factor, offset) != (1, 0) else after.symbol
        if relation == after.symbol:
            why = f"The values of {name} and {relation} must always be equal."
        else:
            told = f"must always be related to the values of {after.symbol} by {name} = {relation}."
            why = f"The values of {name} {told}"
        return name, why, f"{name} = {relation}"


# --- reading them -----------------------------------------------------------------------------------


def refine_dynamic_shapes_from_suggested_fixes(msg, dynamic_shapes):
    """Dynamic shapes changed as the text of an export's error suggests it."""
    lines = re.findall(r"^\s*(\w+) = (.+?)\s*$", msg.partition(_TITLE)[2], re.MULTILINE)
    refined = _Refined(dict(lines), _dims_in(dynamic_shapes))
    return _mapped(refined.of, dynamic_shapes)


class _Refined:
    """What names of dimensions become."""

    def __init__(self, fixes, known):
        self.fixes, self.known, self.made = fixes, known, {}

    def root(self, name):
        """The dimension or number that a name stands for."""
        if name not in self.made:
            self.made[name] = self._read(name) if name in self.fixes else self.known.get(name) or Dim(name)
        return self.made[name]

    def _read(self, name):
        found = ast.parse(self.fixes[name], mode="eval").body
        if isinstance(found, ast.Call):
            return Dim(name, **{str(k.arg): ast.literal_eval(k.value) for k in found.keywords})
        return self._value(found)

    def _value(self, node):
        if isinstance(node, ast.Name):
            return self.root(node.id)
        if isinstance(node, ast.BinOp):
            first, second = self._value(node.left), self._value(node.right)
            if isinstance(node.op, ast.Mult):
                return second * first if isinstance(first, int) else first * second
            return first + second if isinstance(node.op, ast.Add) else first - second
        return ast.literal_eval(node)

    def of(self, dim):
        root = self.root(dim.root.__name__)
        return root if dim is dim.root else root * dim.factor + dim.offset


def _mapped(function, shapes):
    """Apply to the dimensions of nested shapes."""
    if isinstance(shapes, Dim):
        return function(shapes)
    if isinstance(shapes, dict):
        return {key: _mapped(function, value) for key, value in shapes.items()}
    if isinstance(shapes, (list, tuple)):
        return type(shapes)([_mapped(function, value) for value in shapes])
    return shapes


def _dims_in(shapes):
    found: dict = {}
    _mapped(lambda dim: found.setdefault(dim.root.__name__, dim.root), shapes)
    return found
