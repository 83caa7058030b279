"""Graphs in which attributes that nothing writes to are constants, and decide branches."""

import ast

from rushlight import Tensor
from rushlight.jit._annotations import value_type
from rushlight.jit._decided import Decisions
from rushlight.jit._frozen_modules import folded_value, is_frozen, running
from rushlight.jit._graph import Lowering
from rushlight.jit._graph_inline import Inlining
from rushlight.jit._graph_nodes import Graph
from rushlight.jit._graph_tuples import _jit_pass_lower_simple_tuples
from rushlight.nn import Module

__all__ = ["Deciding", "frozen_graph_of"]


def frozen_graph_of(unit, module):
    """The graph of a frozen module's method: calls written out, what was folded as constants."""
    graph = Graph(unit.tree.name, unit, module)
    with running():
        _FrozenInlining(graph, unit, module).function(unit.tree)
    _jit_pass_lower_simple_tuples(graph)
    _drop_unused(graph)
    return graph


class Deciding(Decisions, Lowering):
    """Emits only the branches that a run takes, where constant attributes say which."""

    def constant(self, owner, name):
        """Whether an attribute of a module is a constant, and its value: none is here."""
        return False, None

    def static(self, node):
        taken = self.decided(node.test)
        return super().static(node) if taken is None else taken

    def expression_IfExp(self, node):  # noqa: N802
        taken = self.decided(node.test)
        if taken is None:
            return super().expression_IfExp(node)
        return self.expression(node.body if taken else node.orelse)

    def taken(self, body):
        """The statements that runs reach, branches that are decided in place of their conditions."""
        found = []
        for statement in body:
            taken = self.decided(statement.test) if isinstance(statement, ast.If) else None
            if taken is None:
                found.append(statement)
            else:
                found += self.taken(statement.body if taken else statement.orelse)
            if found and isinstance(found[-1], ast.Return):
                break
        return found

    def known(self, node):
        """Whether an expression is a constant, and its value."""
        if isinstance(node, ast.Attribute):
            owner = self.module_of(node.value)
            return (False, None) if owner is None else self.constant(owner, node.attr)
        return super().known(node)

    def module_of(self, node):
        """The module that an expression stands for; nothing is emitted."""
        if isinstance(node, ast.Name):
            value = self.scope.get(node.id)
            if value is None:
                return None
            return self.modules.get(value, self.module if value._name == "self" else None)
        if isinstance(node, ast.Attribute):
            found = getattr(self.module_of(node.value), node.attr, None)
            return found if isinstance(found, Module) else None
        return None


class _FrozenInlining(Deciding, Inlining):
    """Writes out calls, and what was folded as constants."""

    def constant(self, owner, name):
        if is_frozen(owner):
            return folded_value(owner, name) if name != "training" else (True, owner.training)
        found = getattr(owner, name, None)  # of a part that was folded with all that it has
        return hasattr(owner, name), found

    def expression_Attribute(self, node):  # noqa: N802
        known, value = self.known(node)
        if known and not isinstance(value, Module):
            kind = "Tensor" if isinstance(value, Tensor) else value_type(value).schema()
            return self.emit(
                "prim::Constant", type_=kind, attributes={} if value is None else {"value": value}
            )
        return super().expression_Attribute(node)


def _drop_unused(graph):
    from rushlight.jit._graph_passes import _jit_pass_dce

    _jit_pass_dce(graph)
