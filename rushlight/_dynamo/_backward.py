"""The backward pass of a captured program as a graph: autograd runs once more on the fake tensors of the
capture, and what it calls is written down.
"""

import operator
import threading
from dataclasses import dataclass, field

import rushlight as torch
from rushlight._operators.traits import gives_a_view
from rushlight._ops import OpOverload
from rushlight._subclasses._fake_history import begins_history
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
    inner: list = field(default_factory=list)  # places among the results of those that others need


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
        results: dict = {}  # of each step of autograd
        for i in self.with_gradient:
            results.setdefault(self.results[i].grad_fn, []).append(i)
        reached = {step: _reached(step, results) for step in results}
        under = {step: _all_under(step, reached) for step in results}

        def stays_apart(step):  # whether its gradients come to leaves through results alone, on one way
            found = reached[step].results
            return found and not reached[step].leaves and not any(under[s] & found for s in found)

        first = {step for step in results if not stays_apart(step)}
        first.update(*(under[step] for step in first))
        made = [self._part_of_inputs(group, results, under) for group in _connected(first, reached)]
        made.sort(key=lambda part: part.results)
        for step in sorted(results.keys() - first, key=lambda step: len(under[step])):
            needs = sorted(i for s in reached[step].results for i in results[s])
            sources = [self.input_count + i for i in needs]
            made.append(Part(results[step], sources, [self.results[i] for i in needs]))
        return made

    def _part_of_inputs(self, steps, results, under):
        places = sorted(i for step in steps for i in results[step])
        needed = {i for step in steps for s in under[step] for i in results[s]}
        inner = [at for at, i in enumerate(places) if i in needed]
        return Part(places, self.inputs, self.leaves, inner)

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


@dataclass
class _Reached:
    """Where the gradients of a step of autograd come to."""

    results: set  # steps of other results, which are not looked behind
    leaves: bool  # whether there is a way that meets none of these
    steps: set  # all in between


def _reached(step, results):
    found, leaves, seen, pending = set(), False, {step}, [step]
    while pending:
        for node in [n for n, _ in pending.pop().next_functions if n is not None and n not in seen]:
            if node in results:
                found.add(node)
            elif hasattr(node, "variable") or begins_history(node):
                leaves = True
            else:
                seen.add(node)
                pending.append(node)
    return _Reached(found, leaves, seen)


def _all_under(step, reached):
    """The steps of all results that a step's result is computed from."""
    found, pending = set(), [step]
    while pending:
        new = reached[pending.pop()].results - found
        found |= new
        pending += new
    return found


def _connected(steps, reached):
    """Groups of steps that have nothing in common but leaves."""
    groups: list = []
    for step in steps:
        mine, members = reached[step].steps | reached[step].results, {step}
        for group in [g for g in groups if not mine.isdisjoint(g[0])]:
            groups.remove(group)
            mine, members = mine | group[0], members | group[1]
        groups.append((mine, members))
    return [members for _, members in groups]


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
