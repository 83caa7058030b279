"""Which sizes of a program may change, and one graph for all of them.

The program is traced at many sizes. Traces are aligned with the one that has all steps, each number that
changes is explained, and further sizes check that. What depends on the example otherwise is an error.
"""

import copy
import itertools
import operator
import traceback

import rushlight as torch
from rushlight import fx
from rushlight._errors.capture import GuardOnDataDependentSymNode
from rushlight._subclasses.size_numbers import named
from rushlight.fx.node import Node

from ._align import Specialized, align, is_explained, leaves_of, name_of, same, steps_of, work_of
from ._companions import MOST_APART, Companions
from ._data import source_of
from ._explain import Samples, Unexplained, across, explain, few
from ._lower import own_frame, place_of
from ._numeric import computes_alike
from ._points import LARGE, apart, bends, random_points, typical, upper
from ._reals import explain_real
from ._result_sizes import describe as describe_results
from ._sizes import SIZE, constant
from ._trace import RECURRENT
from .dynamic_shapes import UserError

_MANY = 70  # sizes of which periods can be told; beyond those asked for, too, where the program runs there


class _Richer(Exception):
    """Another trace has more steps: it should stand for all."""

    def __init__(self, point):
        super().__init__(point)
        self.point = point


class _Chosen(Exception):
    """A `cond` takes its branch by sizes that change: it should be a node, by its number."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


class Dynamics(Companions):
    """The sizes of a program. ``trace(sizes)`` traces it; ``run`` and ``inputs`` compute at other sizes."""

    def __init__(self, trace, symbols, places, computation):
        self.trace, self.symbols, self.places, self.computation = trace, symbols, places, computation
        self.traces, self.rows_of = {}, {}
        self.compared = None  # what the `cond`s of the first trace depend on
        self.how = {}  # to trace
        self.ranges = {}  # of the sizes for which the plan was made
        self.size_nodes = set()  # that `source_of` made
        self.spaced = set()  # sizes of which others are multiples

    # --- traces ---

    def _key(self, sizes):
        return tuple(sizes.get(name, symbol.value) for name, symbol in self.symbols.items())

    def at(self, sizes):
        """The trace at some sizes, the others as in the example."""
        key = self._key(sizes)
        if key not in self.traces:
            try:
                self.traces[key] = self.trace(dict(zip(self.symbols, key)), **self.how)
            except Exception as error:
                frame = own_frame(traceback.extract_tb(error.__traceback__))
                where = f" ({frame[0]}, line {frame[1]})" if frame else ""
                self.traces[key] = f"fails with {_told(sizes)}{where}: {str(error).strip()}", error
        found = self.traces[key]
        if isinstance(found, tuple):
            raise Specialized(found[0]) from found[1]
        self._check_choices(found)
        return found

    def _check_choices(self, found):
        """Raise where a `cond` that is no node compares other numbers than in the first trace."""
        compared = found.numbers.compared if found.numbers is not None else []
        if self.compared is None:
            self.compared = compared
        for i, (one, other) in enumerate(zip(self.compared, compared)):
            if one != other and i not in self.trace.choices.kept:
                if one is not None and other is not None:
                    raise _Chosen(i)
                return

    def usable(self, sizes):
        """Whether numbers that depend on data can be such: at others the program fails, also when it runs."""
        if not any(symbol.data for symbol in self.symbols.values()):
            return True
        try:
            self.at(sizes)
            return True
        except Specialized:
            return False

    def rows(self, sizes):
        """The leaves of all arguments at some sizes, for each node of the template."""
        key = self._key(sizes)
        if key not in self.rows_of:
            other = self.at(sizes)
            try:
                found = align(self.template.graph, other.graph)
            except Specialized:
                if steps_of(other.graph) <= steps_of(self.template.graph):
                    raise
                align(other.graph, self.template.graph)
                raise _Richer(sizes) from None
            _check_constants(self.template, other)
            self.rows_of[key] = found
        return self.rows_of[key]

    def _use(self, sizes):
        self.template, self.rows_of = self.at(sizes), {}

    # --- the plan ---

    def settle(self):
        """(trace, plan, symbols, places): hinted sizes that cannot change become static."""
        symbols, places = {name: copy.copy(s) for name, s in self.symbols.items()}, list(self.places)
        while True:
            try:
                return self._settle()
            except _Chosen as choice:
                self.trace.choices.kept.add(choice.number)
            self.symbols.clear()
            self.symbols |= {name: copy.copy(s) for name, s in symbols.items()}
            self.places[:] = places
            self.traces, self.compared, self.how, self.spaced = {}, None, {}, set()

    def _settle(self):
        if len(self.symbols) > 1:
            self.unite()
        try:
            planned = self._plan(self.symbols)
        except Specialized as error:
            planned = self._planned_whole()
            if planned is None and (self._space() or self._link()):
                return self._settle()
            if planned is None and all(symbol.required for symbol in self.symbols.values()):
                raise _violated(self.symbols, error) from None
            planned = self._without_some_hints() if planned is None else planned
        describe_results(self)
        return self.template, planned, self.kept, [p for p in self.places if p.symbol in self.kept]

    def _planned_whole(self):
        """The plan with recurrent layers as one step, whose length may change."""
        if not any(map(_is_recurrent, self.computation.module.modules())):
            return None
        before, self.how, self.traces = self.traces, {"whole_recurrence": True}, {}
        try:
            return self._plan(self.symbols)
        except Specialized:
            self.how, self.traces = {}, before
            return None

    def _without_some_hints(self):
        kept = {name: symbol for name, symbol in self.symbols.items() if symbol.required}
        for name, symbol in self.symbols.items():
            if name in kept:
                continue
            try:
                self._plan({**kept, name: symbol})
                kept[name] = symbol
            except Specialized:
                continue
        try:
            return self._plan(kept)
        except Specialized as error:
            raise _violated(kept, error) from None

    def _plan(self, symbols):
        self.kept = symbols
        if not symbols:
            self._use({})
            self.ranges = {}
            return []
        point = {name: typical(symbol) for name, symbol in symbols.items()}
        for _ in range(2 * len(symbols) + 6):
            self._use(point)
            try:
                planned = self._planned(symbols, point)
            except _Richer as richer:
                point = {name: richer.point.get(name, point[name]) for name in symbols}
                continue
            for name, symbol in symbols.items():
                symbol.value = point[name]
            return planned
        raise Specialized("takes another path at other sizes")

    def _planned(self, symbols, point):
        self.choices = {}  # (node, index) of truths that change -> the smallest sizes with another one
        self.ranges = ranges = {n: self._range(n, symbol, point) for n, symbol in symbols.items()}
        unlike = apart(point, ranges)
        if self.usable({**point, **unlike}):
            self.rows({**point, **unlike})
        planned = self._mended(self._explained(list(symbols), point, ranges), point, ranges)
        for sizes in (unlike, *random_points(point, ranges), *bends(planned, point, ranges)):
            if self.usable({**point, **sizes}):
                self._verify(planned, {**point, **sizes})
        for (node, i), sizes in self.choices.items():
            if any(s.data for s in symbols.values()) or not computes_alike(
                self.template, planned, sizes, self.computation
            ):
                raise Specialized(
                    f"calls `{name_of(node)}` with {leaves_of(node)[i]!r}, and with {_told(sizes)} otherwise",
                    node,
                )
        asked = {name: symbol for name, symbol in symbols.items() if not symbol.data}
        for name, symbol in asked.items():
            symbol.lower, symbol.upper = ranges[name][0], upper(symbol, ranges[name][1])
        self._check_small(planned, asked, point)
        return planned

    def _explained(self, names, point, ranges):
        """What to replace in the template: (node, index of the argument's leaf, polynomial)."""
        base = self.rows(point)
        tried = {n: [s for s in few(ranges[n], point[n]) if self.usable({**point, n: s})] for n in names}
        axes = {n: [self.rows({**point, n: size}) for size in tried[n]] for n in names}
        planned = []
        inner = getattr(self.template.numbers, "inner", frozenset())
        for k, (node, leaves) in enumerate(zip(self.template.graph.nodes, base)):
            for i, value in enumerate(leaves):
                if isinstance(value, Node):
                    continue
                on = [n for n in names if any(not same(row[k][i], value) for row in axes[n])]
                if not inner.isdisjoint(on):
                    raise Specialized(
                        "computes with a number that a function of `cond`, `map` or `while_loop` reads from "
                        "its data in a way that a graph cannot follow",
                        node,
                    )
                if on and type(value) is bool:
                    n = on[0]
                    other = next(size for size, row in zip(tried[n], axes[n]) if not same(row[k][i], value))
                    self.choices[node, i] = {**point, n: other}
                elif on:
                    planned.append((node, i, self._explain(node, k, i, on, point, ranges)))
        return planned

    def _explain(self, node, k, i, names, point, ranges):
        def value_at(sizes):
            value = self.rows(sizes)[k][i]
            if type(value) is not kind:
                raise Specialized(f"computes {value!r} from sizes in `{name_of(node)}`", node)
            return value

        kind = type(self.rows(point)[k][i])
        if kind not in (int, float):
            raise Specialized(f"computes {self.rows(point)[k][i]!r} from sizes in `{name_of(node)}`", node)
        wider = {n: (low, max(high, low + _MANY)) for n, (low, high) in ranges.items()}
        for tried in (ranges, wider):
            try:
                samples = Samples(value_at, point, tried, self.usable)
                held = node.meta.get("constant")
                short = held is not None and held.dtype is torch.float32
                return explain(samples, names) if kind is int else explain_real(samples, names, short)
            except Unexplained:
                continue
            except Specialized:
                if tried is ranges:
                    raise
        raise Specialized(
            f"computes {value_at(point)} in `{name_of(node)}` from {_listed(names)} otherwise than by "
            "sums, products, quotients, max and min" + (", or roots of these" if kind is float else ""),
            node,
        )

    def _mended(self, planned, point, ranges):
        """The plan, with numbers that differ where all sizes are small although they don't where one is."""
        corner = {name: low for name, (low, _) in ranges.items()}
        if len(corner) < 2 or not self.usable({**point, **corner}):
            return planned
        try:
            rows = self.rows({**point, **corner})
        except Specialized:
            return planned
        expected = {(node, i): polynomial for node, i, polynomial in planned}
        for k, (node, leaves) in enumerate(zip(self.template.graph.nodes, self.rows(point))):
            for i, value in enumerate(leaves):
                known = expected.get((node, i), value)
                if type(value) is not int:
                    continue
                known = constant(known) if known is value else known
                if known.at(corner) != rows[k][i]:
                    samples = Samples(lambda at, k=k, i=i: self.rows(at)[k][i], point, ranges, self.usable)
                    expected[node, i] = next(
                        (found for found in across(samples, list(ranges)) if found.at(point) == value), known
                    )
        order = {node: k for k, node in enumerate(self.template.graph.nodes)}
        return sorted(
            ((*at, found) for at, found in expected.items()), key=lambda item: (order[item[0]], item[1])
        )

    def _verify(self, planned, sizes):
        """Raise unless a trace at further sizes is what the plan says."""
        expected = {(node, i): polynomial for node, i, polynomial in planned}
        for node, ours, theirs in zip(
            self.template.graph.nodes, map(leaves_of, self.template.graph.nodes), self.rows(sizes)
        ):
            for i, (value, other) in enumerate(zip(ours, theirs)):
                if isinstance(value, Node) or (node, i) in self.choices:
                    continue
                polynomial = expected.get((node, i))
                value = value if polynomial is None else polynomial.number(sizes)
                if not same(value, other):
                    raise Specialized(
                        f"computes {other!r} with {_told(sizes)} in `{name_of(node)}`, not {value!r}", node
                    )

    # --- ranges ---

    def _range(self, name, symbol, point):
        """The sizes for which the program takes its path; narrowed if nothing else was asked."""
        value = point[name]
        if symbol.data:
            return self._range_of_data(name, symbol, point)
        if symbol.upper <= symbol.lower:
            raise UserError(
                f"export: the range [{symbol.lower}, {symbol.upper}] of {name} has too few sizes to be "
                "dynamic; leave it static"
            )
        # Of one and two alone nothing can be explained: larger sizes are looked at then.
        high = int(min(symbol.upper, max(LARGE, value))) if symbol.upper > 2 else 2 * MOST_APART
        error = self._differs(name, min(value + 1, high), point) or self._differs(name, high, point)
        if error is not None:
            most = self._last(name, value, high, point)
            if (symbol.given or symbol.max_given) and most < symbol.upper:
                error.args = (error.args[0] + (_advice(symbol, most) if most > value else ""),)
                raise error
            high = most
        low = min(max(int(symbol.lower), 2), value)
        if self._differs(name, low, point) is not None:
            low = self._last(name, value, low, point)
        if high == max(low, int(symbol.lower)) or high < 2:
            raise Specialized(f"takes this path only for {name} = {high}")
        return low, high

    def _range_of_data(self, name, symbol, point):
        """The samples that are tried of a number that depends on data."""
        value = point[name]
        if symbol.lower == symbol.upper:
            return value, value
        low = next(n for n in range(min(2, value), value + 1) if self.usable({**point, name: n}))
        low, high, step = max(low, symbol.lower), value, 1
        while high < min(symbol.upper, LARGE):
            further = int(min(high + step, symbol.upper, LARGE))
            if self.usable({**point, name: further}):
                high, step = further, 2 * step
            elif step > 1:
                step = 1
            else:
                break
        if low == high and symbol.upper - symbol.lower > 1:
            raise Specialized(f"works with no number {name} of its data but {value}, and does not say so")
        return low, high

    def _differs(self, name, size, point):
        sizes = {**point, name: size}
        try:
            self.rows(sizes)
            return None
        except Specialized as error:
            data = [n for n, symbol in self.symbols.items() if symbol.data]
            if data and not self.usable(sizes):
                if any(self.usable({**sizes, **dict.fromkeys(data, n)}) for n in (1, 0)):
                    return None
            return error

    def _last(self, name, good, bad, point):
        """The last size on the way to `bad` at which the program is still the same."""
        step = 1
        while abs(bad - good) > 1:
            middle = good + min(step, abs(bad - good) // 2) * (1 if bad > good else -1)
            if self._differs(name, middle, point) is None:
                good, step = middle, 2 * step
            else:
                bad, step = middle, max(step // 2, 1)
        return good

    def _check_small(self, planned, symbols, point):
        """Small sizes, where operators take shortcuts: what counts there are results."""
        for name, symbol in symbols.items():
            for size in _downwards(symbol.lower, symbol.asked_lower):
                if not any(self._holds(planned, at) for at in self._with_data({**point, name: size})):
                    self._refuse_small(symbol, size)
                    break
                symbol.lower = size
        for size in (1, 0):
            small = {n: size for n, symbol in symbols.items() if symbol.lower <= size}
            if len(small) > 1 and not any(
                self._holds(planned, at) for at in self._with_data({**point, **small})
            ):
                for name in small:
                    self._refuse_small(symbols[name], size)
                    symbols[name].lower = size + 1
        self._check_corner(planned, symbols, point)

    def _with_data(self, sizes):
        """The sizes, with numbers of the data that the program takes beside them: those of the example may be
        too large for them."""
        data = [name for name, symbol in self.symbols.items() if symbol.data]
        if not data or self.usable(sizes):
            return [sizes]
        others = [{**sizes, **dict.fromkeys(data, n)} for n in (2, 1, 0)]
        return [at for at in others if self.usable(at)] or [sizes]

    def _check_corner(self, planned, symbols, point):
        """All sizes as small as they may be: larger ones are allowed alone where the graph does not what the
        program does."""
        for step in itertools.count() if len(symbols) > 1 else ():
            corner = {**point, **{name: symbol.lower for name, symbol in symbols.items()}}
            movable = [
                name for name, symbol in symbols.items() if symbol.lower < min(point[name], symbol.upper)
            ]
            if not movable or self._fails(corner) or self._holds(planned, corner):
                return
            for name in movable:
                self._refuse_small(symbols[name], symbols[name].lower)
                symbols[name].lower = min(symbols[name].lower + 1 + step // 8, point[name])

    def _fails(self, sizes):
        """Whether the program itself does at some sizes."""
        try:
            self.at(sizes)
            return False
        except Specialized:
            return True

    def _refuse_small(self, symbol, size):
        if symbol.min_given:
            raise Specialized(
                f"computes otherwise with {symbol.name} = {size} than with larger sizes, but sizes from "
                f"{symbol.asked_lower} on were asked for"
            )

    def _holds(self, planned, sizes):
        try:
            self._verify(planned, sizes)
            return True
        except (Specialized, _Richer):
            pass
        try:
            other = self.at(sizes)
        except Specialized:
            return False
        if self._same_work(planned, other.graph, sizes):
            return True
        return computes_alike(self.template, planned, sizes, self.computation)

    def _same_work(self, planned, graph, sizes):
        """Whether steps differ only in how they lay elements out."""
        ours, theirs = work_of(self.template.graph), work_of(graph)
        if [(n.op, n.target) for n in ours] != [(n.op, n.target) for n in theirs]:
            return False
        expected = {(node, i): polynomial for node, i, polynomial in planned}
        for node, other in zip(ours, theirs):
            leaves, others = leaves_of(node), leaves_of(other)
            if len(leaves) != len(others):
                return False
            for i, (value, theirs_) in enumerate(zip(leaves, others)):
                if isinstance(value, Node) or isinstance(theirs_, Node):
                    if type(value) is not type(theirs_):
                        return False
                    continue
                polynomial = expected.get((node, i))
                if not same(value if polynomial is None else polynomial.number(sizes), theirs_):
                    return False
        return True

    # --- nodes ---

    def source_of(self, name):
        """A node for the size, read from the input where it stands most plainly."""
        if self.symbols[name].data:
            return source_of(self.template, name)
        candidates = [p for p in self.places if p.symbol == name]
        place = min(candidates, key=lambda p: (p.factor != 1 or p.offset != 0, p.leaf))
        graph, symbol = self.template.graph, self.symbols[name]
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        tensor = placeholders[len(self.template.held) + place.leaf]
        if place.dim is None:
            return tensor
        # Behind the sizes read before, so that they stand in the order in which they are asked for.
        rest = (n for n in graph.nodes if n.op != "placeholder" and n not in self.size_nodes)
        with graph.inserting_before(next(rest)):
            node = graph.create_node("call_function", SIZE, (tensor, place.dim), {}, "sym_size_int")
            node.meta["val"] = place.factor * named(name, symbol.value) + place.offset
            self.size_nodes.add(node)
            for step, number in ((operator.sub, place.offset), (operator.floordiv, place.factor)):
                if number != (step is operator.floordiv):
                    value = step(node.meta["val"], number)
                    node = graph.call_function(step, (node, number))
                    node.meta["val"] = value
                    self.size_nodes.add(node)
        return node


def _check_constants(template, other):
    """Tensors that the program makes of plain numbers are the same at all sizes."""
    for name, tensor in template.constants.items():
        twin = other.constants.get(name)
        alike = twin is not None and twin.shape == tensor.shape and twin.dtype == tensor.dtype
        if twin is tensor or (alike and is_explained(tensor)):  # by its numbers
            continue
        if not alike or not _equal(twin, tensor):
            users = [n for n in template.graph.nodes if n.op == "placeholder" and n.name == f"c_{name}"]
            node = next(iter(users[0].users), None) if users else None
            raise Specialized(
                "makes a tensor of numbers that change with the sizes; torch.full makes one of a size", node
            )


def _equal(a, b):
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _told(sizes):
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _listed(names):
    return ", ".join(names)


def _advice(symbol, most):
    """What would make the range one that holds."""
    if symbol.data:
        return ""
    if not symbol.given:
        return f"; it does not up to {most}"
    return f"; it does not with Dim({symbol.name!r}, max={most})"


def _downwards(lower, asked):
    """The sizes below a range, all if they are few."""
    sizes = range(lower - 1, asked - 1, -1)
    return [n for n in sizes if n < 4 or n > lower - 4 or n % max(len(sizes) // 8, 1) == 0]


def _is_recurrent(module):
    """Whether a module has steps, or its graph a layer that takes them."""
    graph = getattr(module, "graph", None)
    names = [getattr(n.target, "_opname", None) for n in graph.nodes] if isinstance(graph, fx.Graph) else []
    return isinstance(module, torch.nn.RNNBase) or not set(RECURRENT).isdisjoint(names)


def _violated(symbols, error):
    place = place_of(error.node) if error.node is not None else None
    where = f"{place[0]}, line {place[1]}: the" if place else "The"
    if symbols and all(symbol.data for symbol in symbols.values()):
        return GuardOnDataDependentSymNode(
            ", ".join(symbols),
            f"Could not guard on data-dependent expression of {', '.join(symbols)}: {where} program "
            f"{str(error).rstrip('.')}. torch._check says what may be relied on.",
        )
    return UserError(
        f"Constraints violated ({', '.join(symbols)})! {where} program {str(error).rstrip('.')}. Leave the "
        "size static, or write the program so that it does not depend on the example's."
    )
