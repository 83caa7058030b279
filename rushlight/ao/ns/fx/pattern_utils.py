"""Operations that are compared as one: a layer with its activation, observer or cast behind it."""

import rushlight
from rushlight import nn
from rushlight.ao.quantization.observer import _is_activation_post_process
from rushlight.nn import functional as F

__all__ = ["end_node_matches_reversed_fusion", "get_reversed_fusions", "get_type_a_related_to_b"]


def get_type_a_related_to_b(base_name_to_sets_of_related_ops):
    """All pairs of operations that are in one set."""
    return {(a, b) for found in base_name_to_sets_of_related_ops.values() for a in found for b in found}


# What has the observer of its operands, as nobody else does.
_UNWATCHED = {rushlight.cat, rushlight.stack}
# An observer, as a part of a pattern.
_OBSERVER = object()
_HALF = ("to", rushlight.float16)


def get_reversed_fusions():
    """(operations from the last to the first, where the operation itself stands, counted from the first)"""
    found = []
    activations = (nn.ReLU, F.relu, rushlight.relu)
    for dims in (1, 2, 3):
        pairs = [(getattr(nn, f"Conv{dims}d"), nn.ReLU), (getattr(F, f"conv{dims}d"), F.relu)]
        found += [((after, first), 0) for first, after in pairs]
        bn = getattr(nn, f"BatchNorm{dims}d")
        conv = getattr(nn, f"Conv{dims}d")
        found += [((nn.ReLU, bn, conv), 0), ((bn, conv), 0)]
    roots = (nn.Linear, F.linear, rushlight.add, rushlight.mul, nn.BatchNorm2d, nn.BatchNorm3d)
    found += [((after, first), 0) for first in roots for after in activations]
    found += [((nn.BatchNorm1d, nn.Linear), 0)]
    # Computation on halves: cast back and forth around it.
    for first in (F.linear, nn.Linear):
        found += [((_HALF, after, first, "dequantize"), 1) for after in activations]
        found += [((_HALF, first, "dequantize"), 1)]
        found += [((after, first, "dequantize"), 1) for after in activations]
    with_observer = [((_OBSERVER, *parts), base) for parts, base in found]
    alone = [((_OBSERVER, None), 0)]  # any operation that is watched
    return sorted([*with_observer, *found, *alone], key=lambda item: -len(item[0]))


def _is(node, part, modules):
    if part is None:
        return node.op in ("call_function", "call_method", "call_module")
    if part is _OBSERVER:
        return node.op == "call_module" and _is_activation_post_process(modules[str(node.target)])
    if isinstance(part, tuple):
        return node.op == "call_method" and node.target == part[0] and node.args[1:2] == part[1:]
    if isinstance(part, str):
        return node.op == "call_method" and node.target == part
    if isinstance(part, type):
        return node.op == "call_module" and type(modules[str(node.target)]) is part
    return node.op == "call_function" and node.target is part


def end_node_matches_reversed_fusion(end_node, reversed_fusion, gm, seen_nodes):
    """Whether a pattern ends at a node, along the first operands, and no node of it was seen."""
    from .utils import first_operand

    modules, node = dict(gm.named_modules(remove_duplicate=False)), end_node
    for i, part in enumerate(reversed_fusion):
        if node is None or node in seen_nodes or not _is(node, part, modules):
            return False
        if part is None and (_is(node, _OBSERVER, modules) or node.target in _UNWATCHED):
            return False
        if i + 1 < len(reversed_fusion):
            node = first_operand(node)
            if node is None or len(node.users) > 1:
                return False
    return True
