"""One graph for many sizes of a call's arguments.

A program is captured at several sizes, each number that changes is explained as a polynomial of these, and
one more capture sees what the program asks of its sizes: what it compares them with says how far they may go.
What cannot be explained so leaves the graph to one size.
"""

import contextlib
import weakref
from dataclasses import dataclass

import rushlight as torch
from rushlight import _C
from rushlight.fx import Node
from rushlight.fx._operator_code import written

from ._capture import capture
from ._results import is_record
from ._sizes import SMALLEST, Specialized, evaluated, explained, unified
from ._watch import Watch
from .exc import Unsupported

__all__ = ["Symbols", "capture_sizes", "mark", "symbols_of"]

_MOST_SYMBOLS = 2
_LARGE = 1 << 12  # a size at which programs that differ for large ones do
_marks: dict = {}  # id of a tensor -> (weak reference, dimension -> whether it is dynamic)


def mark(tensor, dimensions, dynamic):
    """Have dimensions of a tensor be traced for many sizes from the first call on, or for one only."""
    key = id(tensor)
    if key not in _marks:
        _marks[key] = weakref.ref(tensor, lambda _: _marks.pop(key, None)), {}
    for dimension in dimensions:
        _marks[key][1][dimension % max(tensor.dim(), 1)] = dynamic


@dataclass
class Symbols:
    """Sizes that may change: where they are, and how far they may go."""

    places: dict  # (input, dimension) -> symbol
    bounds: dict  # symbol -> (smallest, largest)

    def __str__(self):
        told = []
        for name, (low, high) in self.bounds.items():
            where = " and ".join(f"{d} of input {i}" for (i, d), s in self.places.items() if s == name)
            told.append(f"{low} to {high} in dimension {where}")
        return ", ".join(told)


def symbols_of(leaves, known, everywhere):
    """The places whose sizes a graph for these arguments should leave open: (input, dimension) -> symbol.

    Such are those that differ from another graph's (of an `Entry`, or None), that are open there, and marked
    ones; with `everywhere` the first dimension of each argument. Sizes that changed alike get one symbol.
    """
    sizes: dict = {}  # what distinguishes symbols -> places
    opened = known.guards.symbols.places if known is not None and known.guards.symbols is not None else {}
    for i, leaf in enumerate(leaves):
        tensor = leaf.tensor
        marks = _marks.get(id(tensor), (None, {}))[1]
        for d, size in enumerate(tensor.shape):
            before = known.shapes[i][d] if known is not None else size
            wanted = size != before or (i, d) in opened or marks.get(d) or (everywhere and d == 0)
            if wanted and marks.get(d) is not False and size >= SMALLEST:
                sizes.setdefault((size, before), []).append((i, d))
    if not 0 < len(sizes) <= _MOST_SYMBOLS:
        return {}
    return {place: f"s{n}" for n, places in enumerate(sizes.values()) for place in places}


def capture_sizes(function, args, kwargs, leaves, places):
    """(captures, the sizes of each by symbol, Symbols): the last capture was watched."""
    _check_memory(leaves, places)
    points = _points(leaves, places)

    def traced(point, watch=None):
        return _at(function, args, kwargs, leaves, places, point, watch)

    captures = [traced(point) for point in points[:-1]]
    watch = Watch(_shapes(captures, points), points[-1])
    captures.append(traced(points[-1], watch))
    lines = unified([written(made.graph)[0] for made in captures], points)
    _check_alike(captures)
    if captures[0].replaced:
        raise Specialized("the program replaces tensors of its state")
    constants = written(captures[0].graph)[1]

    def holds(point):
        return written(traced(point).graph) == (evaluated(lines, point), constants)

    bounds = _checked_bounds(watch.ranges.bounds, points, holds)
    for (i, d), name in places.items():
        if not bounds[name][0] <= leaves[i].tensor.shape[d] <= bounds[name][1]:
            raise Specialized("the program takes another path at sizes near by")
    return captures, points, Symbols(places, bounds)


def _checked_bounds(bounds, points, holds):
    """Bounds at whose ends the program was seen to be the same: operators may ask for sizes too, such as
    those that read a table of so many rows."""
    if not holds({name: low for name, (low, _) in bounds.items()}):
        raise Specialized("the program takes another path at small sizes")
    largest = _LARGE
    while largest > max(points[-1].values()):
        with contextlib.suppress(Specialized):
            if holds({name: min(high, largest) for name, (_, high) in bounds.items()}):
                return {
                    n: (low, high if largest == _LARGE else min(high, largest))
                    for n, (low, high) in bounds.items()
                }
        largest //= 2
    raise Specialized("the program takes another path at large sizes")


def _at(function, args, kwargs, leaves, places, point, watch):
    shapes = {}
    for i, leaf in enumerate(leaves):
        if any(at == i for at, _ in places):
            shapes[id(leaf.tensor)] = torch.Size(
                point[places[i, d]] if (i, d) in places else size for d, size in enumerate(leaf.tensor.shape)
            )
    try:
        return capture(function, args, kwargs, shapes, watch)
    except Unsupported as error:
        raise Specialized(str(error)) from error


def _check_memory(leaves, places):
    """What is traced at other sizes shares no memory with other arguments."""
    storages = [leaf.tensor.untyped_storage()._cdata for leaf in leaves]
    if any(storages.count(storages[i]) > 1 for i, _ in places):
        raise Specialized("its arguments share memory")


def _points(leaves, places):
    """The sizes to trace at: all corners of a box, and one point beyond them. They are near those of the
    call, and unlike all others, so that nothing is equal by chance."""
    taken = {size for leaf in leaves for size in leaf.tensor.shape}
    triples: dict = {}
    for (i, d), name in places.items():
        if name not in triples:
            triples[name] = _unlike(max(leaves[i].tensor.shape[d], 5), taken)
            taken.update(triples[name])
    points: list = [{}]
    for name, (low, high, _) in triples.items():
        points = [{**point, name: size} for point in points for size in (low, high)]
    return [*points, {name: triple[2] for name, triple in triples.items()}]


def _unlike(least, taken):
    """Three primes from a number on that are not taken."""
    found: list = []
    while len(found) < 3:
        least += 1
        if least not in taken and all(least % n for n in range(2, int(least**0.5) + 1)):
            found.append(least)
    return found


def _shapes(captures, points):
    """Of each tensor of the graph, by its node's name: numbers, and polynomials where they change."""
    shapes = {}
    graphs = [[n for n in made.graph.nodes if n.op != "output"] for made in captures]
    if len(set(map(len, graphs))) > 1:
        raise Specialized("the program takes a longer path at other sizes")
    for nodes in zip(*graphs):
        values = [node.meta["val"] for node in nodes]
        if not all(isinstance(value, torch.Tensor) for value in values):
            continue
        columns = list(zip(*(_C.TensorBase.shape.__get__(value) for value in values)))
        shapes[nodes[0].name] = [c[0] if len(set(c)) == 1 else explained(c, points[:-1]) for c in columns]
    return shapes


def _check_alike(captures):
    """Besides their operators' numbers, captures are the same."""
    first, *others = captures
    for made in others:
        same = written(made.graph)[1] == written(first.graph)[1] and made.records == first.records
        same = same and [label for _, label in made.held] == [label for _, label in first.held]
        if not same or not all(map(torch.equal, made.constants, first.constants)):
            raise Specialized("the program computes numbers from its sizes")
        if _outline(made.results) != _outline(first.results):
            raise Specialized(
                "the program returns its sizes, or otherwise depends on them in what it returns"
            )


def _outline(output, seen=None):
    """What a program returns, to be compared: nodes by their names, objects by where they were met first."""
    seen = {} if seen is None else seen
    if isinstance(output, Node):
        return "node", output.name
    record = is_record(output)
    if record or isinstance(output, (list, dict)):
        if id(output) in seen:
            return "object", seen[id(output)]
        seen[id(output)] = len(seen)
    if record:
        items = list(dict.values(output)) if isinstance(output, dict) else []
        return type(output), [(k, _outline(v, seen)) for k, v in vars(output).items()], _outline(items, seen)
    if isinstance(output, dict):
        return type(output), [(key, _outline(value, seen)) for key, value in output.items()]
    if isinstance(output, (list, tuple)):
        return type(output), [_outline(value, seen) for value in output]
    return type(output), output
