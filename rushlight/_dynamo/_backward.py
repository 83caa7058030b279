"""The backward pass of a captured program as a graph: autograd runs once more on the fake tensors of the
capture, and what it calls is written down.
"""

import threading
from dataclasses import dataclass

import rushlight as torch
from rushlight.fx import Graph, Node

__all__ = ["Backward", "BackwardGraph", "NoBackward"]

aten = torch.ops.aten  # type: ignore[attr-defined]
_lock = threading.RLock()

# Views of what a backward pass takes are taken again instead of being kept.
_VIEWS = frozenset("t transpose view permute unsqueeze squeeze expand select slice detach alias".split())


class NoBackward(Exception):
    """The backward pass cannot be a graph of its own."""


@dataclass
class BackwardGraph:
    """Gradients of inputs, from gradients of results and values of the forward graph."""

    graph: Graph
    takes: list  # nodes of the forward graph: the first inputs; gradients of results follow
    edges: list  # per output: which of the inputs with gradients it is for


class Backward:
    """Traces backward passes of one capture, each for gradients of some of its results."""

    def __init__(self, recorder, outputs):
        self.recorder = recorder
        self.results = [node.meta["val"] for node in outputs]
        self.with_gradient = [i for i, fake in enumerate(self.results) if fake.requires_grad]
        placeholders = [n for n in recorder.graph.nodes if n.op == "placeholder"]
        own = {node: tensor for tensor, label, _, node in recorder.held.values() if label != "argument"}
        leaves = [own.get(node, node.meta["val"]) for node in placeholders]  # where autograd's graph ends
        self.inputs = [i for i, leaf in enumerate(leaves) if leaf.requires_grad]
        self.leaves = [leaves[i] for i in self.inputs]
        self.sources = {node: _source(node) for _, node in recorder.nodes.values()}

    def trace(self, given):
        """The graph for gradients of these results: a flag for each that can have one."""
        if any(leaf._backward_hooks for leaf in self.leaves):
            raise NoBackward("a tensor has hooks")
        picked = [self.results[i] for i, flag in zip(self.with_gradient, given) if flag]
        with _lock:
            writer = _Writer(self.recorder, self.sources)
            try:
                return writer.write(picked, self.leaves)
            except NoBackward:
                raise
            except Exception as error:
                raise NoBackward(f"{type(error).__name__} in its backward pass: {error}") from error
            finally:
                writer.leave()

    def depends_on_results(self):
        """Whether one result is computed from another, so that a gradient may be asked for in between."""
        steps = {id(fake.grad_fn): fake.grad_fn for fake in self.results if fake.grad_fn is not None}
        pending = [n for step in steps.values() for n, _ in step.next_functions if n is not None]
        seen = set()
        while pending:
            step = pending.pop()
            if id(step) in steps:
                return True
            if step not in seen:
                seen.add(step)
                pending += [n for n, _ in step.next_functions if n is not None]
        return False


def _source(node):
    """The value behind what recording gradients took of it."""
    while node.op == "call_function" and node.target is aten.detach.default:
        node = node.args[0]
    return node


class _Writer:
    """One trace: the recorder writes into a graph of its own, whose inputs are what it takes."""

    def __init__(self, recorder, sources):
        self.recorder, self.sources = recorder, sources
        self.known = dict(recorder.nodes)
        self.before = recorder.graph, recorder.nodes
        self.graph = recorder.graph = Graph()
        recorder.nodes = dict(self.known)
        self.anchor = self.graph.create_node("placeholder", "anchor", (), {}, name="anchor")
        self.taken = {}  # node of the forward graph -> node here
        self.takes = []
        recorder.node_of = self._node_of

    def leave(self):
        self.recorder.graph, self.recorder.nodes = self.before
        self.recorder.node_of = None

    def write(self, results, leaves):
        gradients = [self._gradient_of(result) for result in results]
        held = len(self.recorder.held), len(self.recorder.constants)
        autocast = torch.is_autocast_enabled("cpu")
        torch.set_autocast_enabled("cpu", False)
        try:
            with torch.compiler._capturing_program(), self.recorder.fakes, self.recorder:
                found = torch.autograd.grad(results, leaves, gradients, allow_unused=True, retain_graph=True)
        finally:
            torch.set_autocast_enabled("cpu", autocast)
        if (len(self.recorder.held), len(self.recorder.constants)) != held:
            raise NoBackward("its backward pass makes tensors of numbers")
        edges = [i for i, gradient in enumerate(found) if gradient is not None]
        outputs = tuple(self._node_of(found[i]) for i in edges)
        for i in edges:
            if found[i].shape != leaves[i].shape or found[i].layout is not torch.strided:
                raise NoBackward("a gradient is sparse")
        self.graph.erase_node(self.anchor)
        self.graph.output(outputs)
        return BackwardGraph(self.graph, self.takes, edges)

    def _gradient_of(self, result):
        """An input for the gradient of a result; gradients are contiguous."""
        with torch.no_grad():
            like = torch.empty(result.shape, dtype=result.dtype, device="meta")
        fake = self.recorder.fakes.from_meta(like, result.device)
        node = self.graph.placeholder(f"gradient_{len(self.recorder.nodes)}")
        node.meta["val"] = fake
        self.recorder.nodes[id(fake)] = fake, node
        return fake

    def _node_of(self, tensor):
        entry = self.recorder.nodes.get(id(tensor))
        if entry is None:
            raise NoBackward("its backward pass uses a tensor of unknown origin")
        node = entry[1]
        return node if node.graph is self.graph else self._take(self.sources.get(node, node))

    def _take(self, node):
        """A value of the forward graph: an input, or a view taken again of one."""
        known = self.taken.get(node)
        if known is not None:
            return known
        if _is_view(node):
            arguments = (self._take(node.args[0]), *node.args[1:])
            with self.graph.inserting_before(self.anchor):
                made = self.graph.call_function(node.target, arguments, dict(node.kwargs))
        else:
            first_view = next(n for n in self.graph.nodes if n.op != "placeholder" or n is self.anchor)
            with self.graph.inserting_before(first_view):
                made = self.graph.placeholder(f"kept_{len(self.takes)}")
            self.takes.append(node)
        made.meta["val"] = node.meta["val"]
        self.taken[node] = made
        return made


def _is_view(node):
    if node.op != "call_function" or getattr(node.target, "_opname", None) not in _VIEWS:
        return False
    return isinstance(node.args[0], Node) and not any(
        isinstance(a, Node) for a in (*node.args[1:], *node.kwargs.values())
    )
