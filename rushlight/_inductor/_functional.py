"""Writes that nobody but the writer sees become operators without effect, which other passes may move."""

import rushlight as torch
from rushlight._operators.entries import _INPLACE
from rushlight._ops import OpOverload

from ._passes import storage_of

__all__ = ["functionalize"]

aten = torch.ops.aten  # type: ignore[attr-defined]


def functionalize(graph):
    """Replace in-place pointwise operators where the tensor before the write is not looked at again."""
    position = {node: i for i, node in enumerate(graph.nodes)}
    aliases: dict = {}
    for node in graph.nodes:
        aliases.setdefault(storage_of(node), []).append(node)
    for node in list(graph.nodes):
        if _may_replace(node, aliases, position):
            node.target = node.target.functional


def _may_replace(node, aliases, position):
    if not _is_pointwise_in_place(node.target):
        return False
    value = node.meta["val"]
    if not value.dtype.is_floating_point:
        return False
    for operand in node.all_input_nodes:
        other = operand.meta["val"]
        if other.dtype != value.dtype or torch.broadcast_shapes(other.shape, value.shape) != value.shape:
            return False
    before = [n for n in aliases[storage_of(node)] if position[n] < position[node]]
    if any(n.op == "placeholder" for n in before):
        return False
    return all(position[user] <= position[node] for n in before for user in n.users)


def _is_pointwise_in_place(target):
    """Whether it computes elements of the operand's dtype, and has a form that gives a new tensor."""
    if not isinstance(target, OpOverload) or target.namespace != "aten" or target._entry.form != _INPLACE:
        return False
    return target.traits.family == "pointwise" and not target.traits.gives_bool
