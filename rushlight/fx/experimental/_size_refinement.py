"""`Refine`: names for the sizes that a checked graph leaves open, and which of them are equal."""

from __future__ import annotations

import itertools
import operator

import rushlight as torch
from rushlight.fx.node import Node, map_arg
from rushlight.fx.tensor_type import Dyn, TensorType

from ._type_rules import broadcast_types, calculate_out_dimension, flattened_range, rule_for
from .refinement_types import Equality
from .unification import Var, isvar

__all__ = ["Refine"]

_REFINEMENT_RULES: dict = {}
_EXPRESSION_RULES: dict = {}


def register_refinement_rule(target):
    """Decorator: the equalities between the sizes of a node and of its operands."""
    return rule_for(_REFINEMENT_RULES, target)


def register_algebraic_expressions_inference_rule(target):
    """Decorator: a rule that writes the sizes of a node as expressions of its operands'."""
    return rule_for(_EXPRESSION_RULES, target)


class Refine:
    """After `refine`, ``constraints`` holds what is known of the names that stand where ``Dyn`` stood."""

    def __init__(self, traced):
        self.constraints: list = []
        self.traced = traced
        self.symbol_iter = itertools.count()

    def refine(self) -> bool:
        """Name sizes and collect equalities, node by node."""
        for node in self.traced.graph.nodes:
            self.refine_node(node)
        return True

    def symbolic_relations(self) -> bool:
        """Names become SymPy's symbols, sizes after windows expressions of them."""
        for node in self.traced.graph.nodes:
            self.infer_symbolic_relations(node)
        return True

    def replace_dyn_with_fresh_var(self, typ):
        """A type with a new name for each ``Dyn``."""
        if typ == Dyn:
            return Var(next(self.symbol_iter))
        return _map_sizes(self.replace_dyn_with_fresh_var, typ)

    def convert_to_sympy_symbols(self, typ):
        """A type with symbols in place of names."""
        if isvar(typ):
            import sympy

            return sympy.symbols(str(typ))
        return _map_sizes(self.convert_to_sympy_symbols, typ)

    def refine_node(self, n: Node):
        """Name the sizes of a node and add its equalities."""
        n.type = self.replace_dyn_with_fresh_var(Dyn if n.type is None else n.type)
        if n.op == "output":
            n.type = map_arg(n.args[0], lambda node: node.type)
        for rule in self._rules(_REFINEMENT_RULES, n):
            self.constraints += rule(n)
        return n.type

    def infer_symbolic_relations(self, n: Node):
        """Write the sizes of a node as SymPy's expressions."""
        n.type = self.convert_to_sympy_symbols(n.type)
        if n.op == "output":
            n.type = map_arg(n.args[0], lambda node: node.type)
        for rule in self._rules(_EXPRESSION_RULES, n):
            rule(n, self.traced.get_submodule(n.target)) if n.op == "call_module" else rule(n)
        return n.type

    def _rules(self, table, n):
        if n.op == "call_function":
            return [table[n.target]] if n.target in table else []
        if n.op == "call_module":
            classes = type(self.traced.get_submodule(n.target)).__mro__
            return [table[kind] for kind in classes if kind in table][:1]
        return []


def _map_sizes(change, typ):
    if isinstance(typ, TensorType):
        return TensorType(tuple(change(size) for size in typ.__args__))
    if isinstance(typ, (list, tuple)):
        return type(typ)(change(part) for part in typ)
    return typ


def _equal_sizes(node, which):
    """Equalities between some sizes of the operand and the result."""
    before, after = node.args[0].type, node.type
    if not (isinstance(before, TensorType) and isinstance(after, TensorType)):
        return []
    return [Equality(a, b) for a, b in zip(before.__args__[which], after.__args__[which])]


@register_refinement_rule(torch.nn.BatchNorm2d)
@register_refinement_rule(torch.nn.ReLU)
def _all(node):
    return _equal_sizes(node, slice(None))


@register_refinement_rule(torch.nn.AdaptiveAvgPool2d)
@register_refinement_rule(torch.nn.MaxPool2d)
def _all_but_image(node):
    return _equal_sizes(node, slice(-2))


@register_refinement_rule(torch.nn.Linear)
def _all_but_features(node):
    return _equal_sizes(node, slice(-1))


@register_refinement_rule(torch.nn.Conv2d)
def _batch(node):
    return _equal_sizes(node, slice(1))


@register_refinement_rule(torch.add)
@register_refinement_rule(operator.add)
def _pointwise(node):
    """Where operands agree the result does; of two names that differ, each may still be 1."""
    if not all(isinstance(arg, Node) and isinstance(arg.type, TensorType) for arg in node.args[:2]):
        return []
    first, second = broadcast_types(*(arg.type for arg in node.args[:2]))
    sizes = zip(first.__args__, second.__args__, node.type.__args__)
    return [Equality(a, result) for a, b, result in sizes if a == b]


@register_refinement_rule(torch.flatten)
def _outside_of_range(node):
    before = node.args[0].type
    if not isinstance(before, TensorType) or not isinstance(node.type, TensorType):
        return []
    start, end = flattened_range(node, len(before.__args__))
    behind = end + 1 - len(before.__args__)
    return _equal_sizes(node, slice(start)) + (_equal_sizes(node, slice(behind, None)) if behind else [])


@register_algebraic_expressions_inference_rule(torch.nn.Conv2d)
def _windows(node, module):
    before = node.args[0].type
    if isinstance(before, TensorType) and isinstance(node.type, TensorType):
        image = (calculate_out_dimension(size, module, i) for i, size in enumerate(before.__args__[2:]))
        node.type = TensorType((*node.type.__args__[:2], *image))
