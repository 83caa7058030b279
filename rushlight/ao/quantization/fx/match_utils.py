"""Where an engine's patterns stand in a graph.

A pattern is an operator, or a tuple: the last operator, then a pattern for each of its operands.
``MatchAllNode`` stands for any operand; what it stands for is no part of the match.
"""

import sys

import rushlight
from rushlight.fx import Node
from rushlight.nn import functional as F
from rushlight.nn.utils.parametrize import type_before_parametrizations

from ..utils import MatchAllNode

__all__: list = []


# Two names of one function, of which patterns have the first.
_ALIASES = {rushlight.adaptive_avg_pool1d: F.adaptive_avg_pool1d, rushlight.avg_pool1d: F.avg_pool1d}


def _calls(node, wanted, modules):
    """Whether a node calls this function, method, or module of this class."""
    if node.op == "call_module" and isinstance(wanted, type):
        module = modules.get(str(node.target))
        return module is not None and type_before_parametrizations(module) is wanted
    if node.op == "call_function":
        same = node.target is wanted or _ALIASES.get(node.target) is wanted
        return same and callable(wanted) and not isinstance(wanted, type)
    return node.op == "call_method" and node.target == wanted


def _is_match(modules, node, pattern, max_uses=sys.maxsize):
    """Whether a pattern ends at a node. Its operands have no other user, or their values would be lost."""
    last, *before = pattern if isinstance(pattern, tuple) else (pattern,)
    if last is MatchAllNode:
        return True
    if not isinstance(node, Node):
        return type(node) is type(pattern) and node == pattern
    if len(node.users) > max_uses or not _calls(node, last, modules):
        return False
    # What a chain's step takes besides is an option of it: ``relu(x, True)``.
    fits = len(node.args) == len(before) or (len(before) <= 1 <= len(node.args))
    return not before or (fits and all(_is_match(modules, *pair, 1) for pair in zip(node.args, before)))


def _nodes_as(pattern, node):
    """The nodes that a pattern matched, in the pattern's form."""
    if not isinstance(pattern, tuple):
        return node
    return (node, *(_nodes_as(part, arg) for part, arg in zip(pattern[1:], node.args)))


def _members(pattern, nodes):
    """The nodes that are parts of a match, operands first; what ``MatchAllNode`` stands for is none."""
    if not isinstance(pattern, tuple):
        return [nodes] if isinstance(nodes, Node) and pattern is not MatchAllNode else []
    found = []
    for part, inner in zip(pattern[1:], nodes[1:]):
        found += _members(part, inner)
    return found + _members(pattern[0], nodes[0])


def _last_leaf(nodes):
    """The node that a fused one takes the place of, unless a configuration says otherwise."""
    while isinstance(nodes, tuple):
        nodes = nodes[-1]
    return nodes


class _Match:
    """A pattern in a graph: its nodes in its own form, and those that are parts of it, operands first."""

    def __init__(self, pattern, config, last):
        self.pattern, self.config, self.last = pattern, config, last
        self.nested = _nodes_as(pattern, last)
        self.nodes = _members(pattern, self.nested)
        getter = config._root_node_getter
        self.root = _last_leaf(self.nested) if getter is None else getter(self.nested)
        self.first = self.nodes[0]

    @property
    def extra_inputs(self):
        """What a fused node takes besides the root's operands."""
        getter = self.config._extra_inputs_getter
        return () if getter is None else tuple(getter(self.nested))

    @property
    def observation_type(self):
        kinds = self.config._num_tensor_args_to_observation_type
        if kinds:
            return kinds[sum(isinstance(arg, Node) for arg in self.first.args)]
        return self.config.observation_type


def _length(pattern):
    """How many operators a pattern has: the longest holds."""
    if isinstance(pattern, tuple):
        return sum(map(_length, pattern))
    return pattern is not MatchAllNode


def _matches(model, backend_config, take):
    """Walk from a graph's end on; ``take`` is told of each match and says whether it holds. Longest first."""
    modules = dict(model.named_modules(remove_duplicate=False))
    table = sorted(
        backend_config._pattern_complex_format_to_config.items(), key=lambda item: -_length(item[0])
    )
    found: dict = {}
    for node in reversed(list(model.graph.nodes)):
        if node in found or node.op in ("placeholder", "get_attr", "output"):
            continue
        for pattern, config in table:
            if not _is_match(modules, node, pattern):
                continue
            match = _Match(pattern, config, node)
            if not any(one in found for one in match.nodes) and take(match):
                found.update(dict.fromkeys(match.nodes, match))
                break
    return found


def _pattern_of_each(model, backend_config):
    """The match of each node."""
    return _matches(model, backend_config, lambda match: True)
