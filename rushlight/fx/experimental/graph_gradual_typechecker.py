"""`GraphTypeChecker`: shapes of a graph's values from annotations, as far as those say anything.

Sizes that no annotation tells are ``Dyn`` and fit everything. `Refine` gives them names and finds which are
equal.
"""

from __future__ import annotations

from rushlight.fx.node import Node, map_arg
from rushlight.fx.tensor_type import Dyn, TensorType

from ._size_refinement import (
    Refine,
    register_algebraic_expressions_inference_rule,
    register_refinement_rule,
)
from ._type_rules import (
    INFERENCE_RULES,
    broadcast_types,
    calculate_out_dimension,
    get_greatest_upper_bound,
    get_parameter,
    register_inference_rule,
)

__all__ = [
    "GraphTypeChecker",
    "Refine",
    "broadcast_types",
    "calculate_out_dimension",
    "get_greatest_upper_bound",
    "get_parameter",
    "register_algebraic_expressions_inference_rule",
    "register_inference_rule",
    "register_refinement_rule",
]


class GraphTypeChecker:
    """Gives every node of a traced module a type; TypeError where annotations contradict each other."""

    def __init__(self, env, traced):
        self.env = env
        self.traced = traced

    def type_check(self) -> bool:
        """Check the nodes in order."""
        for node in self.traced.graph.nodes:
            self.type_check_node(node)
        return True

    def type_check_node(self, n: Node):
        """The type of a node, whose operands have theirs."""
        if n.type is None:
            n.type = Dyn
        if n.op == "get_attr":
            n.type = TensorType(tuple(get_parameter(self.traced, str(n.target)).shape))
        elif n.op == "call_function":
            return self._rule([n.target], n)(n)
        elif n.op == "call_module":
            module = self.traced.get_submodule(n.target)
            return self._rule(type(module).__mro__, n)(n, module)
        elif n.op == "output":
            n.type = map_arg(n.args[0], lambda node: node.type)
        elif n.op != "placeholder":
            raise NotImplementedError(f"Method {n.target} not yet implemented")
        return n.type

    @staticmethod
    def _rule(targets, node):
        for target in targets:
            if target in INFERENCE_RULES:
                return INFERENCE_RULES[target]
        raise RuntimeError(f"No inference rule registered for target {node.target}!")
