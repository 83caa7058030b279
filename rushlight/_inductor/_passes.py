"""Passes over graphs of operators."""

import rushlight as torch
from rushlight.fx import Node

__all__ = ["device_of", "draws", "has_effects", "remove_dead", "storage_of", "written_by"]

# Where the share that dropout drops stands among the arguments.
_DROPS = {"scaled_dot_product_attention": 4, "_scaled_dot_product_efficient_attention": 5}


def has_effects(node):
    """Whether a node does more than compute its result: it writes, or draws random numbers."""
    if not _is_operator(node):
        return node.op in ("placeholder", "output")
    return node.target._schema.is_mutable or bool(written_by(node)) or draws(node)


def _is_operator(node):
    return node.op == "call_function" and hasattr(node.target, "_schema")


def draws(node):
    """Whether a node draws random numbers."""
    if not _is_operator(node):
        return False
    if drops := _DROPS.get(node.target._opname):
        return bool(node.kwargs.get("dropout_p", node.args[drops] if len(node.args) > drops else 0))
    if node.target.namespace != "aten":
        return True  # what a custom operator does in Python is not known
    return node.target.traits.batching == "random"


def device_of(graph):
    """The type of device that a graph runs on: ``"cpu"``, or that of its inputs elsewhere."""
    values = (node.meta.get("val") for node in graph.nodes if node.op == "placeholder")
    types = {value.device.type for value in values if isinstance(value, torch.Tensor)}
    return next(iter(types - {"cpu"}), "cpu")


def written_by(node):
    """The values that a node writes to."""
    if not _is_operator(node):
        return []
    if node.target._opname == "native_batch_norm":  # running statistics, while training
        training = node.args[5] if len(node.args) > 5 else node.kwargs["training"]
        return [a for a in node.args[3:5] if isinstance(a, Node)] if training else []
    if not node.target._schema.is_mutable:
        return []
    found = []
    for i, parameter in enumerate(node.target._schema.arguments):
        if parameter.alias_info is not None and parameter.alias_info.is_write:
            value = node.args[i] if i < len(node.args) else node.kwargs.get(parameter.name)
            found += [
                v for v in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(v, Node)
            ]
    return found


def storage_of(node):
    """What identifies the memory that a node's tensor looks into; None of what is no tensor."""
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None


def remove_dead(graph):
    """Erase what nobody uses, such as the views that recording gradients saves."""
    for node in reversed(list(graph.nodes)):
        if not node.users and not has_effects(node):
            graph.erase_node(node)
