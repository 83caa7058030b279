"""What several passes need: names of targets, and orders of nodes."""

from __future__ import annotations

import heapq

import rushlight as torch
from rushlight import fx
from rushlight.fx._names import _get_qualified_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.fx.graph_module import GraphModule
    from rushlight.fx.node import Node
    from rushlight.nn import Module

__all__ = [
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

Tensors = tuple | list
TensorOrTensors = torch.Tensor | Tensors
NodeList = list
NodeSet = set
Names = list
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: Any):
    """The name of an operator of an accelerator."""
    if isinstance(k, str):
        return k
    module = getattr(k, "__module__", "") or ""
    if "acc_ops" in module:
        return f"acc_ops.{k.__name__}"
    return f"{module.replace('torch._ops', 'torch.ops')}.{k.__name__}"


def get_node_target(submodules, node):
    """What a node calls: a function's or a module class's name, a method's name."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(
            f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}"
        )
    if node.op == "call_module":
        module = submodules[node.target]
        while isinstance(module, torch.nn.Module) and hasattr(module, "_base_class_origin"):
            module = module._base_class_origin
        return torch.typename(module)
    if node.op == "call_function":
        return _get_qualified_name(node.target)
    return str(node.target)


def is_node_output_tensor(node: Node):
    """Whether the node's value is a tensor, as ShapeProp found it."""
    kind = node.meta.get("type", None)
    return kind is not None and issubclass(kind, torch.Tensor)


def _in_order(gm, number):
    """The module with its nodes sorted by use, and by `number` where that leaves a choice."""
    waiting = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    ready = [(number[node], node) for node, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    new, env = fx.Graph(), {}
    while ready:
        _, node = heapq.heappop(ready)
        env[node] = new.node_copy(node, lambda n: env[n])
        for user in node.users:
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, (number[user], user))
    if len(env) < len(gm.graph.nodes):
        stuck = [node for node in gm.graph.nodes if node not in env]
        raise RuntimeError(f"Input graph has cycles, unable to add {stuck}")
    new._codegen = gm.graph._codegen
    gm.graph = new
    return gm


def _rank(node):
    """Inputs come first, attributes next, the output last."""
    return {"placeholder": 0, "get_attr": 1, "output": 3}.get(node.op, 2)


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the nodes into an order in which each comes after what it uses."""
    return _in_order(gm, {node: (_rank(node), i) for i, node in enumerate(gm.graph.nodes)})


def stable_topological_sort(gm: GraphModule):
    """As `legalize_graph`; nodes stay as near to their places as they can."""
    order = {node: i for i, node in enumerate(gm.graph.nodes)}
    return _in_order(gm, {node: (node.op == "output", i) for node, i in order.items()})


class FxNetAccFusionsFinder:
    """Groups of nodes that must stay together because a value that is no tensor passes between them."""

    def __init__(self, module: Module, acc_nodes) -> None:
        self.module, self.acc_nodes = module, set(acc_nodes)

    def __call__(self):
        """Node -> its group; nodes that may stand alone are left out."""
        groups = {}
        for node in self.module.graph.nodes:
            if node not in self.acc_nodes or node.op not in CALLABLE_NODE_OPS:
                continue
            if "tensor_meta" in node.meta or is_node_output_tensor(node):
                continue
            joined = {node, *(n for n in (*node.all_input_nodes, *node.users) if self._may_join(n))}
            for member in list(joined):
                joined |= groups.get(member, set())
            for member in joined:
                groups[member] = joined
        return groups

    def _may_join(self, node):
        return node in self.acc_nodes and node.op in CALLABLE_NODE_OPS
