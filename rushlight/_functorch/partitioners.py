"""Splitting a joint graph into a forward and a backward one, by what is kept between them."""

import math
import operator

import rushlight as torch
from rushlight.fx import Graph, GraphModule, Node

from ._min_cut import FlowGraph

__all__ = ["default_partition", "draw_graph", "min_cut_rematerialization_partition"]


def _is_tangent(node):
    """Whether a node of a joint graph is the gradient of a result."""
    return node.op == "placeholder" and "tangents" in str(node.target)


def _is_primal(node):
    """Whether it is an input of the forward pass."""
    return node.op == "placeholder" and not _is_tangent(node)


class _Joint:
    """The parts of a joint graph."""

    def __init__(self, module, num_fwd_outputs):
        self.module, self.graph = module, module.graph
        self.tangents = [n for n in self.graph.nodes if _is_tangent(n)]
        self.primals = [n for n in self.graph.nodes if _is_primal(n)]
        outputs = self.graph.output_node().args[0]
        self.results, self.gradients = list(outputs[:num_fwd_outputs]), list(outputs[num_fwd_outputs:])
        self.forward = _above(self.results) | set(self.primals)
        self.late = _below(self.tangents)  # depends on gradients of results
        self.backward = _above(self.gradients)

    def split(self, saved):
        """The two modules, when these values of the forward pass are kept."""
        forward = _extract(self.graph, self.primals, [*self.results, *saved])
        backward = _extract(self.graph, [*saved, *self.tangents], self.gradients)
        return GraphModule(self.module, forward), GraphModule(self.module, backward)


def _nodes(values):
    return [v for v in values if isinstance(v, Node)]


def _above(values):
    """The values and all that they are computed of."""
    found, pending = set(), _nodes(values)
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending += node.all_input_nodes
    return found


def _below(nodes):
    found, pending = set(), list(nodes)
    while pending:
        node = pending.pop()
        if node not in found and node.op != "output":
            found.add(node)
            pending += node.users
    return found


def _extract(graph, inputs, outputs):
    """The graph that computes outputs of inputs."""
    made, copies = Graph(), {}
    for node in inputs:
        copies[node] = copy = made.placeholder(node.name)
        copy.meta = dict(node.meta)
    needed, pending = set(), _nodes(outputs)
    while pending:
        node = pending.pop()
        if node not in needed and node not in copies:
            needed.add(node)
            pending += node.all_input_nodes
    for node in graph.nodes:
        if node not in needed:
            continue
        if node.op == "placeholder":
            raise RuntimeError(f"Node {node} was invalid, but is output")
        copies[node] = made.node_copy(node, lambda n: copies[n])
    made.output(tuple(copies[v] if isinstance(v, Node) else v for v in outputs))
    made.lint()
    return made


def default_partition(
    joint_module, _joint_inputs, *, num_fwd_outputs, static_lifetime_input_indices=None, **options
):
    """Keep all that the backward pass takes of the forward one, as eager autograd does."""
    joint = _Joint(joint_module, num_fwd_outputs)
    own = joint.backward - joint.forward
    saved = []
    for node in joint.graph.nodes:
        if node in joint.forward and (any(u in own for u in node.users) or node in joint.gradients):
            saved += _items_of(node) if _is_tuple(node) else [node]
    return joint.split(list(dict.fromkeys(n for n in saved if n.op != "get_attr")))


def _is_tuple(node):
    return isinstance(node.meta.get("val"), (tuple, list))


def _items_of(node):
    return [user for user in node.users if user.target is operator.getitem]


def min_cut_rematerialization_partition(
    joint_module,
    _joint_inputs,
    compiler="inductor",
    *,
    num_fwd_outputs,
    static_lifetime_input_indices=None,
    **options,
):
    """Keep the fewest bytes from which the backward pass can be had by cheap operators alone.

    Operators whose records say that they compute element by element, or make views, run again in the backward
    pass where that saves memory."""
    joint = _Joint(joint_module, num_fwd_outputs)
    flow = FlowGraph()
    for node in joint.graph.nodes:
        if node.op == "output":
            continue
        if node in joint.late:
            if node in joint.backward:
                flow.add((node, "in"), "sink", math.inf)
            continue
        if node.op == "placeholder" or (node in joint.forward and not _cheap(node)):
            flow.add("source", (node, "in"), math.inf)
        flow.add((node, "in"), (node, "out"), 0 if node.op == "get_attr" else _cost(node))
        for user in node.users:
            if user.op != "output":
                flow.add((node, "out"), (user, "in"), math.inf)
        if node in joint.gradients:
            flow.add((node, "out"), "sink", math.inf)
    cost, side = flow.cut("source", "sink")
    if cost == math.inf:
        return default_partition(joint_module, _joint_inputs, num_fwd_outputs=num_fwd_outputs)
    kept = [
        n
        for n in joint.graph.nodes
        if n.op != "get_attr" and (n, "in") in side and (n, "out") not in side and n not in joint.late
    ]
    return joint.split(kept)


def _cheap(node):
    """Whether a node may run twice."""
    if node.target is operator.getitem or node.op == "get_attr":
        return True
    traits = getattr(node.target, "traits", None)
    if traits is None or traits.random or node.is_impure():
        return False
    return traits.elementwise or traits.family in ("view", "pointwise")


def _cost(node):
    """The bytes of a value; what is no tensor cannot be kept."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size() + 1
    return math.inf if isinstance(value, (tuple, list)) else 1


def draw_graph(
    traced, fname, figname="fx_graph", clear_meta=True, prog=None, parse_stack_trace=False, **options
):
    """Write a picture of a graph; the ending of the name says in which format."""
    import os

    from rushlight.fx.passes.graph_drawer import FxGraphDrawer

    base, ending = os.path.splitext(fname)
    ending = ending or ".svg"
    graph = FxGraphDrawer(traced, figname).get_main_dot_graph()
    write = getattr(graph, "write_" + ending.lstrip("."))
    write(base + ending) if prog is None else write(base + ending, prog=prog)
