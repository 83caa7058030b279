"""`CSEPass`: operators that compute the same are called once."""

from typing import Any

import rushlight as torch
from rushlight._ops import OpOverload
from rushlight.fx import Graph, GraphModule, Node
from rushlight.fx.passes.infra.pass_base import PassBase, PassResult
from rushlight.utils._pytree import tree_flatten

__all__ = ["CSEPass", "get_CSE_banned_ops"]


def get_CSE_banned_ops():  # noqa: N802 - PyTorch's name
    """The operators of ``torch.ops.aten`` that two calls must stay of: they draw random numbers, or write."""
    banned = set()
    for name in dir(torch.ops.aten):
        packet: Any = getattr(torch.ops.aten, name, None)
        overloads = packet.overloads() if hasattr(packet, "overloads") else ()
        # Forms with `out=` write, and say nothing of the others.
        plain = [o for o in (getattr(packet, n) for n in overloads) if not o._schema.is_mutable]
        if overloads and not (plain and all(map(_repeats, plain))):
            banned.add(packet)
    return banned


def _repeats(operator):
    """Whether a second call with the same arguments gives the same and does nothing else."""
    traits = operator.traits
    if operator._schema.is_mutable:
        return False
    return traits is None or not (traits.random or traits.uninitialized)


def _written(graph):
    """The nodes to whose results, or to views of them, the graph writes."""
    found: set = set()
    for node in reversed(graph.nodes):
        operator = node.target
        if isinstance(operator, OpOverload) and (
            operator._schema.is_mutable or (node in found and operator.is_view)
        ):
            found.update(node.all_input_nodes)
    return found


class CSEPass(PassBase):
    """Let equal calls of operators in a GraphModule share one result.

    Random numbers, memory that nobody wrote to, and writes are never shared; nor are results over a write, by
    which they may have changed, nor what the graph writes to.

    Args:
        banned_ops: operators (as ``torch.ops.aten.add``) of which all calls stay.
    """

    def __init__(self, banned_ops=None):
        self.banned_ops = set(banned_ops or ())

    def call(self, graph_module):
        graph, new = graph_module.graph, Graph()
        made: dict = {}  # old node -> new node
        known: dict = {}  # what a node computes -> new node
        writes, modified, written = 0, False, _written(graph)
        for node in graph.nodes:
            key = None if node in written else self._key(node, made, writes)
            if key is not None and key in known:
                made[node], modified = known[key], True
                continue
            made[node] = new.node_copy(node, lambda n: made[n])
            if key is not None:
                known[key] = made[node]
            elif isinstance(node.target, OpOverload) and node.target._schema.is_mutable:
                writes += 1
        new.lint()
        return PassResult(GraphModule(graph_module, new), modified)

    def _key(self, node, made, writes):
        """What a node computes, as a key; None if its calls must stay."""
        operator = node.target
        if node.op != "call_function" or not isinstance(operator, OpOverload) or not _repeats(operator):
            return None
        if operator.overloadpacket in self.banned_ops or operator in self.banned_ops:
            return None
        leaves, spec = tree_flatten((node.args, node.kwargs))
        # Types tell 1 from 1.0 and True; equal trees may hold lists, which have no hash.
        values = tuple((type(v), made[v] if isinstance(v, Node) else v) for v in leaves)
        try:
            hash(values)
        except TypeError:
            return None
        return operator, values, str(spec), writes
