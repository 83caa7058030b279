"""Passes over graphs of operators."""

import functools

from rushlight import _C

__all__ = ["has_effects", "remove_dead"]

_DRAWS = ("rand", "randn", "randint", "randperm", "normal")


@functools.cache
def _families():
    return [record["family"] for record in _C._operator_records()]


def has_effects(node):
    """Whether a node does more than compute its result: it writes, or draws random numbers."""
    if node.op != "call_function" or not hasattr(node.target, "_schema"):
        return node.op in ("placeholder", "output")
    if node.target._schema.is_mutable:
        return True
    if node.target._opname == "scaled_dot_product_attention":
        return bool(node.kwargs.get("dropout_p", node.args[4] if len(node.args) > 4 else 0))
    family = _families()[node.target._entry.index]
    return family == "random" or (family == "factory" and node.target._opname.removesuffix("_like") in _DRAWS)


def remove_dead(graph):
    """Erase what nobody uses, such as the views that recording gradients saves."""
    for node in reversed(list(graph.nodes)):
        if not node.users and not has_effects(node):
            graph.erase_node(node)
