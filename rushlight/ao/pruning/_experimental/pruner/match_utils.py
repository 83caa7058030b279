"""Patterns of layers and functions in a graph, one after another."""

from rushlight import nn
from rushlight.ao.quantization.utils import MatchAllNode
from rushlight.fx import Node
from rushlight.nn.utils import parametrize


def _match(modules, node, current):
    """Whether a node is what one part of a pattern asks for."""
    if isinstance(current, type) and issubclass(current, MatchAllNode):
        return True
    if not isinstance(node, Node):
        return False
    if isinstance(current, type) and issubclass(current, nn.Module):
        if node.op != "call_module":
            return False
        return parametrize.type_before_parametrizations(modules[node.target]) == current
    if callable(current):
        return node.op == "call_function" and node.target is current
    return isinstance(current, str) and node.target == current


def apply_match(modules, pattern, node, matched_node_pattern):
    """The nodes of a pattern that begins at a node, or None.

    Args:
        modules: the graph's modules by their names.
        pattern: classes of modules, functions and targets, each using the result before it.
        node: where the pattern begins.
        matched_node_pattern: nodes that come before, in the result.
    """
    if not isinstance(pattern, tuple):
        return [node] if _match(modules, node, pattern) else None
    matched = list(matched_node_pattern)
    for number, current in enumerate(pattern):
        if not _match(modules, node, current):
            return None
        matched.append(node)
        if number + 1 < len(pattern):
            # The first user alone is looked at.
            node = next(iter(node.users), None)
    return matched
