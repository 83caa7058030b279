"""Passes over graphs of operators."""

import rushlight as torch
from rushlight._dynamo._calls import Recorded
from rushlight._operators.traits import argument, unmarked_writes
from rushlight.fx import Node

__all__ = ["device_of", "draws", "has_effects", "remove_dead", "storage_of", "written_by"]


def has_effects(node):
    """Whether a node does more than compute its result: it writes, draws random numbers, or only checks."""
    if not _is_operator(node):
        return node.op in ("placeholder", "output") or isinstance(node.target, Recorded)
    schema = node.target._schema
    return schema.is_mutable or not schema.returns or bool(written_by(node)) or draws(node)


def _is_operator(node):
    return node.op == "call_function" and hasattr(node.target, "_schema")


def draws(node):
    """Whether a node draws random numbers."""
    if not _is_operator(node):
        return False
    target = node.target
    for i, parameter in enumerate(target._schema.arguments):
        if parameter.name == "dropout_p":
            return bool(argument(target, i, node.args, node.kwargs))
    if target.namespace != "aten":
        return True  # what a custom operator does in Python is not known
    return target.traits.batching in ("random", "random like")


def device_of(graph):
    """The type of device that a graph runs on: ``"cpu"``, or that of its inputs elsewhere."""
    values = (node.meta.get("val") for node in graph.nodes if node.op == "placeholder")
    types = {value.device.type for value in values if isinstance(value, torch.Tensor)}
    return next(iter(types - {"cpu"}), "cpu")


def written_by(node):
    """The values that a node writes to."""
    if not _is_operator(node):
        return []
    target, args, kwargs = node.target, node.args, node.kwargs
    written = unmarked_writes(target, args, kwargs)
    if target._schema.is_mutable:
        written += [i for i, parameter in enumerate(target._schema.arguments) if parameter.is_write]
    found: list = []
    for i in written:
        value = argument(target, i, args, kwargs)
        found += value if isinstance(value, (list, tuple)) else [value]
    return [value for value in found if isinstance(value, Node)]


def storage_of(node):
    """What identifies the memory that a node's tensor looks into; None of what is no tensor."""
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None


def remove_dead(graph):
    """Erase what nobody uses, such as the views that recording gradients saves."""
    for node in reversed(list(graph.nodes)):
        if not node.users and not has_effects(node):
            graph.erase_node(node)
