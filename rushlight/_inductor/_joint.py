"""Forward and backward pass of one program as two graphs, with what the second takes of the first."""

import functools

import rushlight as torch
from rushlight._dynamo._backward import NoBackward
from rushlight._inductor._lower import NotLowered, graph_text
from rushlight._inductor._optimize import optimize
from rushlight._inductor._passes import device_of, draws, remove_dead, storage_of, written_by
from rushlight._inductor._recompute import Recomputed
from rushlight._ops import OpOverload
from rushlight.fx._operator_code import compiled, written

__all__ = ["Joint"]


class Joint:
    """What a compiled graph needs to know to be steps of autograd; `NoBackward` tells why it cannot be."""

    def __init__(self, module, tracer):
        graph = module.graph
        self.sizes_change = module.meta.get("sizes change", False)
        self.results = list(graph.output_node().args[0])
        self.written = _check(graph, self.results)
        traced = [(part, tracer.trace(part, (True,) * len(part.results))) for part in tracer.parts()]
        if not all(first.edges for _, first in traced):
            raise NoBackward("no gradient arrives at an input")
        backwards = [(first, len(part.results) == 1) for part, first in traced]
        self.again = Recomputed(graph, self.results, backwards, device_of(graph))
        for _, first in traced:
            self.again.rewrite(first)
        taken = dict.fromkeys(n for _, first in traced for n in first.takes if n.op != "placeholder")
        self.keeps = list(taken)
        outputs = [*self.results, *(n for n in self.keeps if n not in self.results)]
        graph.output_node().args = (tuple(outputs),)
        remove_dead(graph)
        called = module.meta["calls"]
        self.source = written(graph if called is module else called.graph)
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        self.draws = any(map(draws, graph.nodes))
        if self.draws and device_of(graph) != "cpu":
            raise NoBackward("it draws random numbers of a device, which could not be drawn again")
        self.position = {n: i for i, n in enumerate([*placeholders, *self.keeps])}
        self.keep_positions = [outputs.index(n) for n in self.keeps]
        self.steps = [_Step(self, tracer, part, first) for part, first in traced]
        graph_text(graph)  # fails while the graph can still record itself
        optimize(graph, self.sizes_change)
        self.text = graph_text(graph)

    def connect(self, compiled):
        """Make the runs of a compiled graph steps of autograd."""
        compiled.keep(self.keep_positions, self.draws)
        for step in self.steps:
            step.connect(compiled)

    @functools.cached_property
    def _eager(self):
        return compiled(*self.source)

    def values_again(self, inputs, random_state):
        """Inputs and results of the program's operators run once more, recorded one by one. The inputs are
        views: what one was computed from may be another one, and is no part of the program."""
        with torch.no_grad():
            inputs = [t.clone() if i in self.written else t for i, t in enumerate(inputs)]
        drawn = torch.random.get_rng_state() if random_state is not None else None
        try:
            if drawn is not None:
                torch.random.set_rng_state(random_state)
            with (
                torch.enable_grad(),
                torch.autocast("cpu", enabled=False),
                torch.autocast("cuda", enabled=False),
            ):
                inputs = [t.view_as(t) if t.requires_grad else t for t in inputs]
                return [*inputs, *self._eager(*inputs)]
        finally:
            if drawn is not None:
                torch.random.set_rng_state(drawn)


class _Step:
    """One node of autograd: the backward graphs of a part of the results."""

    def __init__(self, joint, tracer, part, first):
        self.joint, self.tracer, self.part = joint, tracer, part
        self.edges = [part.sources[i] for i in first.edges]
        self.edge_of = {i: at for at, i in enumerate(first.edges)}
        count = len(part.results)
        self.backwards = {(True,) * count: self._lowered(first)}  # by the results that gradients come for
        if tracer.calls_python:  # what it does was watched for these gradients alone
            self.tracer = None
        elif count > 1:  # such as the output of a recurrent layer without its state
            alone = (True,) + (False,) * (count - 1)
            self.backwards[alone] = self.trace(alone)

    def _lowered(self, backward):
        """(text, positions of what it takes, edges) of a backward graph."""
        takes = [self.joint.position[n] for n in backward.takes]
        edges = [self.edge_of[i] for i in backward.edges]
        _check_backward(backward.graph)
        remove_dead(backward.graph)
        optimize(backward.graph, self.joint.sizes_change)
        return graph_text(backward.graph), takes, edges

    def connect(self, compiled):
        at = compiled.record(
            self.edges, self.part.results, self.part.inner, self.joint.values_again, self.trace
        )
        for given, backward in self.backwards.items():
            compiled.add_backward(at, given, backward)

    def trace(self, given):
        """A backward graph for other gradients than the first one's, or None."""
        if self.tracer is None:
            return None
        try:
            backward = self.tracer.trace(self.part, given)
            self.joint.again.rewrite(backward)
            return self._lowered(backward)
        except (NoBackward, NotLowered, KeyError):
            return None  # such gradients take the long way


def _check(graph, results):
    """Positions of inputs that the program writes to; `NoBackward` where autograd would notice a graph."""
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    taken = {storage_of(n) for n in placeholders}
    for result in results:
        if storage_of(result) in taken:
            raise NoBackward("results share memory with each other or with inputs")
        taken.add(storage_of(result))
    for node in graph.nodes:
        whole = isinstance(node.target, OpOverload) and node.target.traits.kept_whole
        if whole and node.meta["val"].requires_grad and "call" not in node.meta:
            raise NoBackward(f"{node.target} has no backward pass of one operator")
    return _written_inputs(graph, placeholders)


def _written_inputs(graph, placeholders):
    """Positions of inputs that are written to and never read, such as running statistics."""
    storages = {storage_of(n): i for i, n in enumerate(placeholders)}
    writes = [(n, target) for n in graph.nodes for target in written_by(n) if storage_of(target) in storages]
    written = {storages[storage_of(target)] for _, target in writes}
    writers = {n for n, _ in writes}
    for node in graph.nodes:
        shares = storage_of(node) in storages and storages[storage_of(node)] in written
        if not shares:
            continue
        if node.meta["val"].requires_grad or (node not in placeholders and node.users):
            raise NoBackward("the program reads what it writes to")
        if any(user not in writers for user in node.users if user.users or written_by(user)):
            raise NoBackward("the program reads what it writes to")
    return written


def _check_backward(graph):
    """A backward pass may be repeated: it draws nothing, and writes to nothing but what it made."""
    given = {storage_of(n) for n in graph.nodes if n.op == "placeholder"}
    for node in graph.nodes:
        if draws(node) or any(storage_of(target) in given for target in written_by(node)):
            raise NoBackward("its backward pass draws random numbers, or writes to what it did not make")
