"""`infer_symbolic_types`: one name for all sizes of a checked graph that must be equal."""

from __future__ import annotations

from rushlight.fx.tensor_type import TensorType

from .graph_gradual_typechecker import Refine
from .unification import isvar, reify, unify

__all__ = [
    "infer_symbolic_types",
    "infer_symbolic_types_single_pass",
    "substitute_all_types",
    "substitute_solution_one_type",
    "unify_eq",
]


def infer_symbolic_types_single_pass(traced):
    """Name open sizes of the graph, and give equal ones the same name or number."""
    refine = Refine(traced)
    refine.refine()
    substitute_all_types(traced.graph, unify_eq(refine.constraints))
    return refine


def infer_symbolic_types(traced):
    """Make open sizes SymPy's expressions. A second pass uses the operands found equal by the first."""
    infer_symbolic_types_single_pass(traced)
    infer_symbolic_types_single_pass(traced).symbolic_relations()


def unify_eq(list_of_eq):
    """Values of names under which all equalities hold; sizes that are expressions already are left alone."""
    values: dict = {}
    for equality in list_of_eq:
        sides = (equality.lhs, equality.rhs)
        if not all(isvar(side) or isinstance(side, int) for side in sides):
            continue
        values = unify(*sides, values)
        if values is False:
            raise TypeError(f"sizes that must be equal are not: {equality}")
    return values


def substitute_solution_one_type(mapping, t):
    """A type with the values of its names."""
    if isinstance(t, TensorType):
        return TensorType(tuple(reify(size, mapping) for size in t.__args__))
    if isinstance(t, (list, tuple)):
        return type(t)(substitute_solution_one_type(mapping, part) for part in t)
    return reify(t, mapping)


def substitute_all_types(graph, mapping):
    """Put values in place of names in the types of all nodes."""
    for node in graph.nodes:
        node.type = substitute_solution_one_type(mapping, node.type)
