"""The backward pass of a captured program as a graph: autograd runs once more on the fake tensors of the
capture, and what it calls is written down.
"""

import operator
import threading
from dataclasses import dataclass

import rushlight as torch
from rushlight._operators.traits import gives_a_view
from rushlight._ops import OpOverload
from rushlight.fx import Graph, Node
from rushlight.fx.node import map_arg

__all__ = ["Backward", "BackwardGraph", "NoBackward"]

__capture__ = "skip"  # Note [Capture marks]

aten = torch.ops.aten  # type: ignore[attr-defined]
_lock = threading.RLock()


class NoBackward(Exception):
    """The backward pass cannot be a graph of its own."""


@dataclass
class BackwardGraph:
    """Gradients of inputs, from gradients of results and values of the forward graph."""

    graph: Graph
    takes: list  # nodes of the forward graph: the first inputs; gradients of results follow
    edges: list  # per output: which of the inputs with gradients it is for


@dataclass
class Part:
    """Results that are one node of autograd, and where its gradients go."""

    results: list  # positions of results with gradients
    sources: list  # positions of inputs, or behind all of these of results
    leaves: list  # their tensors, where autograd's graph of this part ends


class Backward:
    """Traces backward passes of one capture, each for gradients of some of the results of a part."""

    def __init__(self, recorder, outputs):
        self.recorder = recorder
        self.results = [node.meta["val"] for node in outputs]
        self.with_gradient = [i for i, fake in enumerate(self.results) if fake.requires_grad]
        placeholders = [n for n in recorder.graph.nodes if n.op == "placeholder"]
        own = {node: tensor for tensor, label, _, node in recorder.held.values() if label != "argument"}
        leaves = [own.get(node, node.meta["val"]) for node in placeholders]  # where autograd's graph ends
        self.inputs = [i for i, leaf in enumerate(leaves) if leaf.requires_grad]
        self.leaves = [leaves[i] for i in self.inputs]
        self.input_count = len(placeholders)
        self.sources = {node: _source(node) for _, node in recorder.nodes.values()}
        self.prepared: dict = {}  # (results, which of them) -> a graph that was traced before it is asked for

    def parts(self):
        """The nodes of autograd that the program is: results of which another is computed come first."""
        steps: dict = {}  # of autograd, that results come from
        for i in self.with_gradient:
            steps.setdefault(self.results[i].grad_fn, []).append(i)
        below = {step: self._reached(step, steps) for step in steps}
        first = [i for step, (found, _) in below.items() if not found for i in steps[step]]
        made = [Part(sorted(first), self.inputs, self.leaves)]
        pending = {step: found for step, (found, _) in below.items() if found}
        under = {step: set() for step in steps if step not in pending}  # all that a step depends on
        while pending:
            step = next(s for s, found in pending.items() if found <= under.keys())
            found, reaches_leaves = below[step]
            if reaches_leaves:
                raise NoBackward("one result is computed from another one and from inputs with gradients")
            if any(under[s] & found for s in found):
                raise NoBackward("one result is computed from two others, and one of these from the other")
            results = sorted(i for s in found for i in steps[s])
            sources = [self.input_count + i for i in results]
            made.append(Part(steps[step], sources, [self.results[i] for i in results]))
            under[step] = found.union(*(under[s] for s in found))
            del pending[step]
        return made

    def _reached(self, step, steps):
        """(the steps of other results, whether leaves too) that a step's gradients come to."""
        found, leaves, seen, pending = set(), False, set(), [step]
        while pending:
            edges = pending.pop().next_functions
            for node in [n for n, _ in edges if n is not None and n not in seen]:
                seen.add(node)
                if node in steps:
                    found.add(node)
                else:
                    leaves = leaves or hasattr(node, "variable")
                    pending.append(node)
        return found, leaves

    def prepare(self):
        """Trace the passes for all gradients, while somebody watches what Python they run."""
        for part in self.parts():
            given = (True,) * len(part.results)
            self.prepared[tuple(part.results), given] = self.trace(part, given)

    @property
    def calls_python(self):
        """Whether there are steps whose backward is Python: what that does is known as it was watched."""
        return bool(self.recorder.calls.made)

    def trace(self, part, given):
        """The graph for gradients of these results of a part: a flag for each."""
        known = self.prepared.pop((tuple(part.results), given), None)
        if known is not None:
            return known
        if any(leaf._backward_hooks for leaf in self.leaves):
            raise NoBackward("a tensor has hooks")
        picked = [self.results[i] for i, flag in zip(part.results, given) if flag]
        with _lock:
            writer = _Writer(self.recorder, self.sources)
            try:
                return writer.write(picked, part.leaves)
            except NoBackward:
                raise
            except Exception as error:
                raise NoBackward(f"{type(error).__name__} in its backward pass: {error}") from error
            finally:
                writer.leave()


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
        self.again = _computed_again(self.before[0], recorder.calls.checkpoints)
        recorder.node_of = self._node_of

    def leave(self):
        self.recorder.graph, self.recorder.nodes = self.before
        self.recorder.node_of = None

    def write(self, results, leaves):
        gradients = [self._gradient_of(result) for result in results]
        held = len(self.recorder.held), len(self.recorder.constants)
        with (
            torch.autocast("cpu", enabled=False),
            torch.autocast("cuda", enabled=False),
            torch.compiler._capturing_program(),
            self.recorder.fakes,
            self.recorder,
        ):
            found = torch.autograd.grad(results, leaves, gradients, allow_unused=True, retain_graph=True)
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
        if node in self.again:
            arguments, named = map_arg((node.args, node.kwargs), self._take)
            made = self.graph.create_node("call_function", node.target, arguments, named)
        elif _is_view(node):
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


def _computed_again(graph, checkpoints):
    """Nodes of checkpoints that a backward pass computes again, instead of keeping them."""
    from rushlight._inductor._passes import has_effects, storage_of, written_by

    if not checkpoints:
        return frozenset()
    written = {storage_of(target) for node in graph.nodes for target in written_by(node)}
    found: set = set()
    for node in graph.nodes:
        region = node.meta.get("again")
        if region is None or storage_of(node) in written:
            continue
        inside = all(user.meta.get("again") is region for user in node.users)
        if node.target is operator.getitem:
            pure = node.args[0] in found
        else:
            pure = not has_effects(node)
        if pure and (inside or isinstance(node.meta["val"], (tuple, list))):
            found.add(node)
    return found


def _is_view(node):
    """Whether a node is a view of another: a backward pass takes it again instead of keeping it."""
    if node.op != "call_function" or not isinstance(node.target, OpOverload) or not gives_a_view(node.target):
        return False
    return isinstance(node.args[0], Node) and not any(
        isinstance(a, Node) for a in (*node.args[1:], *node.kwargs.values())
    )
