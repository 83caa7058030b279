"""Where an engine's patterns stand in a graph."""

import rushlight
from rushlight.fx import Node
from rushlight.nn import functional as F
from rushlight.nn.utils.parametrize import type_before_parametrizations

from ..utils import MatchAllNode

__all__ = ["Match", "find_matches", "matches_pattern"]


# Two names of one function, of which patterns have the first.
_ALIASES = {rushlight.adaptive_avg_pool1d: F.adaptive_avg_pool1d, rushlight.avg_pool1d: F.avg_pool1d}


class Match:
    """A pattern in a graph: its nodes in the order of their calls."""

    def __init__(self, nodes, config):
        self.nodes, self.config = nodes, config
        self.first, self.last = nodes[0], nodes[-1]
        self.root = nodes[0]

    @property
    def observation_type(self):
        kinds = self.config._num_tensor_args_to_observation_type
        if kinds:
            return kinds[sum(isinstance(arg, Node) for arg in self.first.args)]
        return self.config.observation_type


def _is(node, wanted, modules):
    """Whether a node calls this function, method, or module of this class."""
    if wanted is MatchAllNode:
        return True
    if not isinstance(node, Node):
        return False
    if node.op == "call_module" and isinstance(wanted, type):
        module = modules.get(str(node.target))
        return module is not None and type_before_parametrizations(module) is wanted
    if node.op == "call_function":
        return (
            callable(wanted)
            and not isinstance(wanted, type)
            and (node.target is wanted or _ALIASES.get(node.target) is wanted)
        )
    return node.op == "call_method" and node.target == wanted


def matches_pattern(node, pattern, modules):
    """The nodes of a pattern (its last operator first, nested) that ends at a node; None if it does not."""
    if not isinstance(pattern, tuple):
        return [node] if _is(node, pattern, modules) else None
    last, before = pattern[0], pattern[1]
    if not _is(node, last, modules) or not node.args or not isinstance(node.args[0], Node):
        return None
    # What stands before has no other user, or its value would be lost.
    if len(node.args[0].users) > 1:
        return None
    found = matches_pattern(node.args[0], before, modules)
    return None if found is None else [*found, node]


def _length(pattern):
    return 1 + _length(pattern[1]) if isinstance(pattern, tuple) else 1


def find_matches(model, backend_config):
    """The match of each node: the longest pattern that holds it, from the graph's end on."""
    modules = dict(model.named_modules(remove_duplicate=False))
    table = sorted(
        backend_config._pattern_complex_format_to_config.items(), key=lambda item: -_length(item[0])
    )
    found = {}
    for node in reversed(model.graph.nodes):
        if node in found or node.op in ("placeholder", "get_attr", "output"):
            continue
        for pattern, config in table:
            nodes = matches_pattern(node, pattern, modules)
            if nodes is not None and not any(one in found for one in nodes):
                match = Match(nodes, config)
                found.update(dict.fromkeys(nodes, match))
                break
    return found
