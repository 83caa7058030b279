"""Fusing batch norms into convolutions, and other simplifications for inference."""

from __future__ import annotations

import copy

from rushlight import fx, nn
from rushlight.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.fx._symbolic_trace import Tracer
    from rushlight.fx.graph import Graph
    from rushlight.fx.node import Argument, Node
    from rushlight.nn import Module

__all__ = [
    "UnionFind",
    "extract_subgraph",
    "fuse",
    "matches_module_pattern",
    "optimize_for_inference",
    "remove_dropout",
    "replace_node_module",
    "use_mkl_length",
]

_PATTERNS = [
    (nn.Conv1d, nn.BatchNorm1d),
    (nn.Conv2d, nn.BatchNorm2d),
    (nn.Conv3d, nn.BatchNorm3d),
    (nn.Linear, nn.BatchNorm1d),
]


def _parent_name(target):
    """The path of the owner, and the name in it."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Any, node: Node, modules):
    """Whether a call of a module of the last kind gets the result of one of the first."""
    if not node.args:
        return False
    for kind, current in zip(pattern, (node.args[0], node)):
        if not isinstance(current, fx.Node) or current.op != "call_module":
            return False
        if type(modules.get(current.target)) is not kind:
            return False
    return True


def replace_node_module(node: Node, modules, new_module):
    """Let a node call another module, in the place of the one it called."""
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> Module:
    """Fold batch norms that follow a convolution or linear layer into its weights, for inference."""
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, fx.GraphModule) else fx.symbolic_trace(model)
    modules = dict(traced.named_modules())
    for pattern in _PATTERNS:
        for node in traced.graph.nodes:
            if not matches_module_pattern(pattern, node, modules) or len(node.args[0].users) > 1:
                continue  # the layer's own result is used elsewhere
            layer, norm = modules[node.args[0].target], modules[node.target]
            if not norm.track_running_stats:
                continue
            fold = fuse_linear_bn_eval if isinstance(layer, nn.Linear) else fuse_conv_bn_eval
            replace_node_module(node.args[0], modules, fold(layer, norm))
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    return fx.GraphModule(traced, traced.graph)


def remove_dropout(model: Module) -> Module:
    """The model without its dropout layers."""

    class Remover(fx.Transformer):
        def call_module(self, target, args, kwargs):
            if isinstance(self.submodules[target], nn.Dropout):
                return args[0]
            return super().call_module(target, args, kwargs)

    return Remover(fx.symbolic_trace(model)).transform()


def extract_subgraph(orig_module, nodes, inputs, outputs):
    """A module of some of the nodes."""
    graph, env = fx.Graph(), {}
    for node in inputs:
        env[node] = graph.placeholder(node.name)
    for node in nodes:
        env[node] = graph.node_copy(node, lambda n: env[n])
    graph.output([env[output] for output in outputs])
    graph.lint()
    return fx.GraphModule(orig_module, graph)


class UnionFind:
    """Sets of numbers that join."""

    def __init__(self, n: int) -> None:
        self.parent, self.size = list(range(n)), [1] * n

    def make_set(self, v):
        self.parent[v], self.size[v] = v, 1

    def find(self, v):
        while self.parent[v] != v:
            self.parent[v] = self.parent[self.parent[v]]
            v = self.parent[v]
        return v

    def join(self, a: Argument, b):
        a, b = self.find(a), self.find(b)
        if a == b:
            return
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]


def use_mkl_length(graph: Graph):
    """A rule for `optimize_for_inference`: worth it for more than two nodes."""
    return len(graph.nodes) > 2


def optimize_for_inference(model: Module, pass_config=None, tracer: type[Tracer] = fx.Tracer) -> Module:
    """Fuse batch norms and drop dropouts, as ``pass_config`` says; layouts are chosen by the kernels here."""
    wanted = {"conv_bn_fuse": True, "remove_dropout": True, **(pass_config or {})}
    if wanted["conv_bn_fuse"]:
        model = fuse(model)
    if wanted["remove_dropout"]:
        model = remove_dropout(model)
    return model
