"""Numbers of exported programs that depend on data: samples that suit a program, checks in its graph."""

import math
import operator
from typing import Any

import rushlight as torch
from rushlight._errors.capture import GuardOnDataDependentSymNode
from rushlight._functorch import config
from rushlight._ops import OpOverload
from rushlight._subclasses.data_numbers import DataNumbers, Infeasible
from rushlight._subclasses.decisions import Decisions
from rushlight._subclasses.expressions import SIGNS
from rushlight._subclasses.size_choices import SizeChoices
from rushlight._subclasses.size_numbers import named
from rushlight.fx.node import Node

from ._sizes import SIZE
from .dynamic_shapes import Symbol, ValueRanges

_MOST_UNITED = 6  # sizes of the data
_MOST_TRIES = 40
_OTHERS = ((2,) * 8, (1,) * 8, (0,) * 8, (4,) * 8)  # samples, where the first ones do not suit a program


class DataTraces:
    """Traces of a program with samples of its numbers; ``trace(sizes, numbers, **how)`` makes one."""

    def __init__(self, trace, sizes):
        self.trace, self.inputs = trace, frozenset(sizes)
        self.derived: dict = {}
        self.united: set = set()  # names of those that are equal to others since the program needs it
        self.example: dict = {}  # the sizes in the example
        self.numbers: Any = None  # of the last trace
        self.choices = SizeChoices()
        self.decisions: Any = None  # of branches by numbers of the data
        self.ends: dict = {}  # of each number, the ranges that traces found

    def __call__(self, sizes, **how):
        samples = {name: size for name, size in sizes.items() if name not in self.inputs}
        choices, derived = self.choices, self.derived
        while True:
            self.numbers = DataNumbers(samples, derived, self.decisions, self.united)
            self.numbers.choices = choices if self.inputs else None
            try:
                made = self.trace(sizes, numbers=self.numbers, **how)
            except Infeasible as wish:
                if wish.derived is None or wish.name not in derived or derived is not self.derived:
                    raise
                derived = {**derived, wish.name: wish.derived}  # other sizes of the inputs
                continue
            for name, ends in self.numbers.bounds.items():
                self.ends.setdefault(name, set()).add(ends)
            if choices.tracking or not choices.asked:
                return made
            choices.tracking = True

    def first(self, sizes):
        """A trace with samples that the program accepts."""
        if config.fake_tensor_propagate_real_tensors:
            self._look(sizes)
        self.example, samples = sizes, {}
        others, failure = list(_OTHERS), Exception()
        for _ in range(_MOST_TRIES):
            try:
                return self({**sizes, **samples})
            except Infeasible as wish:
                failure = wish
                if wish.name is None or not self._follow(wish, samples):
                    break
            except GuardOnDataDependentSymNode:
                raise
            except Exception as error:
                if not self.numbers.bounds:
                    raise
                failure = error
                if self._unite({**sizes, **samples}):
                    continue
                if not others:
                    break
                samples = self._other(others.pop(0))
        raise failure

    def _look(self, sizes):
        """Trace beside the example's data, which then decides branches by numbers of it."""
        self.decisions, samples = Decisions(), {}
        with torch.random.fork_rng():
            for _ in range(_MOST_TRIES):
                self.numbers = DataNumbers(samples, decisions=self.decisions)
                try:
                    self.trace(sizes, numbers=self.numbers)
                    break
                except Infeasible as wish:
                    if wish.value is None:
                        raise
                    samples = {**self.numbers.samples, wish.name: wish.value}
        self.decisions.looking = False

    def _unite(self, sizes):
        """Let a size of the data equal one before it, if the program comes further then."""
        numbers, reached = self.numbers, self._reached()
        names = [n for n in numbers.bounds if n in numbers.is_size and n not in self.derived]
        for i, name in enumerate(names[:_MOST_UNITED]):
            for other in names[:i]:
                self.derived[name] = {other: 1}
                self.united.add(name)
                try:
                    self({n: size for n, size in sizes.items() if n != name})
                    return True
                except Infeasible:
                    return True
                except Exception:
                    if self._reached() > reached:
                        return True
                del self.derived[name]
                self.united.discard(name)
        return False

    def _reached(self):
        """How far the last trace came."""
        nodes = self.numbers.tracer.graph.nodes
        return sum(
            isinstance(n.target, OpOverload) and n.target is not SIZE and not is_check(n) for n in nodes
        )

    def _follow(self, wish, samples):
        if wish.derived is not None:
            self.derived[wish.name] = wish.derived
            samples.pop(wish.name, None)
            return True
        found = self.numbers.samples[wish.name] + 1 if wish.value is None else wish.value
        samples.update(self.numbers.samples)
        samples[wish.name] = found
        return True

    def _other(self, values):
        """The samples changed to others, as far as what is known of the numbers allows."""
        made = {}
        for i, (name, (low, high)) in enumerate(self.numbers.bounds.items()):
            made[name] = int(min(max(values[i % len(values)], low), high))
        return made

    def symbols(self):
        """The numbers of the last trace, as sizes that may change."""
        numbers, found = self.numbers, {}
        for name, (low, high) in numbers.bounds.items():
            if name not in numbers.derived and name not in numbers.again:
                least = max(0, low)
                found[name] = Symbol(
                    name, numbers.samples[name], least, high, True, asked_lower=least, data=True
                )
        return found

    def ranges(self, numbers, symbols):
        """{name: ValueRanges} of the numbers that are integers. An end that follows from sizes is none, but
        for the largest number of elements that can be found."""
        found, most = {}, self._most(numbers, symbols)
        for name in numbers.bounds.keys() - numbers.fractions - numbers.inner:
            lows, highs = zip(*self.ends[name])
            low = lows[0] if len(set(lows)) == 1 else min(0, *lows)
            high = highs[0] if len(set(highs)) == 1 else math.inf
            found[name] = ValueRanges(low, min(high, most.get(name, math.inf)))
        return dict(sorted(found.items(), key=lambda item: list(numbers.bounds).index(item[0])))

    def _most(self, numbers, symbols):
        """How large sizes of the data can be, with the largest sizes of inputs."""
        sizes = {name: symbol.upper for name, symbol in symbols.items() if not symbol.data}
        if not sizes or not numbers.most:
            return numbers.most
        if math.inf in sizes.values():
            return {}
        try:
            return self({**self.example, **numbers.samples, **sizes}).numbers.most
        except Exception:
            return {}  # with other samples of the numbers it may run


def sources_of(trace):
    """The nodes whose results have sizes that are numbers of the data."""
    numbers = trace.numbers
    if numbers is None:
        return set()
    found = [numbers.tracer.proxy_of(tensor) for tensor, _ in numbers.origins.values()]
    made = {_unwritten(proxy.node) for proxy in found if proxy is not None}
    return made | {proxy.node for proxy in numbers.nodes.values() if proxy is not None}


def _unwritten(node):
    """The node that made a tensor, of one that stands for it because it wrote to it."""
    while isinstance(node.target, OpOverload) and node.target._schema.is_mutable and node.args:
        node = node.args[0]
    return node


def source_of(trace, name):
    """The node that reads a number."""
    numbers, graph = trace.numbers, trace.graph
    if name in numbers.nodes:
        return numbers.nodes[name].node
    tensor, dim = numbers.origins[name]
    made = _unwritten(numbers.tracer.proxy_of(tensor).node)
    with graph.inserting_after(made):
        node = graph.create_node("call_function", SIZE, (made, dim), {}, "sym_size_int")
    node.meta["val"] = named(name, numbers.samples_of(name))
    return node


def describe_numbers(trace, sources):
    """Let nodes that read numbers know their names, and each check of the graph tell its condition;
    ``sources`` are the nodes of symbols."""
    names = {proxy.node: name for name, proxy in (trace.numbers.nodes if trace.numbers else {}).items()}
    for node, name in names.items():
        if type(node.meta.get("val")) is int:
            node.meta["val"] = named(name, node.meta["val"])
    names |= {node: name for name, node in sources.items()}
    for node in trace.graph.nodes:
        if is_check(node):
            condition = node.args[0]
            shown = _shown(condition, names)
            node.args = (
                condition,
                f"Runtime assertion failed for expression {shown} on node '{condition.name}'",
            )


def is_check(node):
    return getattr(node.target, "_opname", None) == "_assert_scalar"


def _shown(value, names):
    if not isinstance(value, Node) or value in names:
        return names.get(value, str(value)) if isinstance(value, Node) else str(value)
    sign = SIGNS.get(value.target)  # type: ignore[arg-type]
    if value.op != "call_function" or sign is None:
        return value.name
    first, second = (_shown(operand, names) for operand in value.args)
    inner = [a for a in value.args if isinstance(a, Node) and a not in names and a.target in SIGNS]
    if inner and value.target in (operator.mul, operator.floordiv, operator.mod):
        return f"({first}) {sign} ({second})"
    return f"{first} {sign} {second}"
