"""The operators that scripts use, by their full names: `torch.jit.export_opnames`."""

from __future__ import annotations

from rushlight._command.names import show_from
from rushlight.jit import _types as t
from rushlight.jit._graph import graph_of
from rushlight.jit._graph_inline import unit_of
from rushlight.jit._operator_match import operator_schemas, unfit
from rushlight.jit.frontend import Late
from rushlight.nn import Module

__all__ = ["export_opnames"]


def export_opnames(m):
    """The names of all operators that the methods of a script use, overloads included, in order.

    Example:
        >>> torch.jit.export_opnames(torch.jit.script(torch.nn.ReLU()))
        ['aten::relu']
    """
    found, seen = set(), set()
    parts = list(m.modules()) if isinstance(m, Module) else ()
    if any(hasattr(part, "_archive_units") for part in parts):
        raise NotImplementedError(
            "export_opnames: the code of an archive that PyTorch wrote names operators without their "
            "overloads: read .graph"
        )
    for module in parts:
        names = dict.fromkeys((*module._method_names(), "forward"))
        for unit in filter(None, (unit_of(module, name) for name in names)):
            _collect(unit, module, found, seen)
    if not isinstance(m, Module):
        _collect(m.unit, m.owner, found, seen)
    return sorted(found)


def _collect(unit, module, found, seen):
    """Add what a unit uses, and the functions that it calls."""
    if (id(unit), id(module)) in seen:
        return
    seen.add((id(unit), id(module)))
    for node in _nodes(graph_of(unit, module)):
        if node.kind().partition("::")[0] != "prim":
            found.update(names_of(node))
    for name in unit.attributes_of_self if module is not None else ():
        called = unit_of(module, name)
        if called is not None:
            _collect(called, module, found, seen)
    for value in unit.names.values():
        if isinstance(value, Late):
            _collect(value.unit, None, found, seen)


def _nodes(block):
    for node in block._nodes:
        yield node
        for inner in node._blocks:
            yield from _nodes(inner)


def names_of(node):
    """The full names of what a node computes with: of several where a number comes before a tensor."""
    space, _, name = node.kind().partition("::")
    kinds = [_TYPES.get(value._type) or _type_of(value._type) for value in node._inputs]
    if space != "aten":
        return [node.kind()]
    if name in ("__and__", "__or__") and all(kind == t.BOOL for kind in kinds):
        return []  # control flow, which graphs here write so
    if name == "neg" and node._inputs[0].node().kind() == "prim::Constant":
        return []  # a negative number
    if name[0] == "_" and name[:2] != "__" and name != "_set_item" and not operator_schemas(name):
        return []  # a function of the library's own
    if name == "_set_item" and kinds[0] == t.TENSOR:
        by_number = kinds[1] == t.INT
        return ["aten::select.int", "aten::copy_"] if by_number else ["aten::index_put_"]
    if len(kinds) == 2 and kinds[0] in _NUMBERS and kinds[1] == t.TENSOR and name in _REVERSED:
        return [_full(other, [t.TENSOR, kinds[0]][: 1 + (other not in _OF_ONE)]) for other in _REVERSED[name]]
    return [_full(name, kinds)]


# What a number and a tensor give, by operators whose first operand is the tensor.
_REVERSED = {"add": ["add"], "mul": ["mul"], "sub": ["neg", "add"], "div": ["reciprocal", "mul"]}
_OF_ONE = ("neg", "reciprocal")


def _full(name, kinds):
    """``aten::add.Tensor`` for the operator that takes values of these types."""
    fits = [schema for schema in operator_schemas(name) if unfit(schema, kinds, {}) is None]
    if t.TENSOR in kinds or t.list_of(t.TENSOR) in kinds[:1] and fits:
        best = max(fits, key=lambda schema: _exact(schema, kinds), default=None)
        overload = _OF_TENSORS.get((name, len(kinds)), "") if best is None else best.overload_name
        return f"aten::{name}.{overload}".removesuffix(".")
    return f"aten::{name}.{_overload_of_values(name, kinds)}".removesuffix(".")


# What no table of operators has: name, number of operands.
_OF_TENSORS = {("len", 1): "Tensor", ("slice", 5): "Tensor", ("size", 2): "int"}


def _exact(schema, kinds):
    """How many values are of the very type that a schema asks for."""
    pairs = zip(kinds, schema.arguments, strict=False)
    wanted = {"Tensor": (t.TENSOR,), "Scalar": _NUMBERS, "Tensor[]": (t.list_of(t.TENSOR),)}
    return sum(kind in wanted.get(str(a.type), ()) for kind, a in pairs) - any(
        a.is_out for a in schema.arguments
    )


def _overload_of_values(name, kinds):
    """The overload for values of Python's: lists are of type ``t``, dictionaries are told by their keys."""
    if not kinds or name in ("__is__", "__isnot__", "__not__"):
        return ""
    if kinds[0].kind == "List":
        return "t"
    if kinds[0].kind == "Dict":
        return f"Dict_{kinds[0].args[0]}"
    words = list(dict.fromkeys(str(kind) for kind in kinds[:2] if kind in (*_NUMBERS, t.BOOL, t.STR)))
    return "_".join(words)


_NUMBERS = (t.INT, t.FLOAT, t.COMPLEX)
_TYPES = {
    "Tensor": t.TENSOR,
    "NoneType": t.NONE,
    "Device": t.DEVICE,
    **{kind.kind: kind for kind in (*_NUMBERS, t.BOOL, t.STR)},
}


def _type_of(text):
    """The type that graphs write so; unknown where that is more than lists and dictionaries."""
    if text.endswith("[]"):
        return t.list_of(_TYPES.get(text[:-2], t.UNKNOWN))
    if text.startswith("Dict("):
        key, _, value = text[5:-1].partition(", ")
        return t.dict_of(_TYPES.get(key, t.UNKNOWN), _TYPES.get(value, t.UNKNOWN))
    return t.UNKNOWN


show_from("jit", export_opnames)
