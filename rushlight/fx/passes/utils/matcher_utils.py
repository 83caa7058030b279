"""Finding a small graph in a large one."""

import copy
from collections import defaultdict
from dataclasses import dataclass, field

import rushlight as torch
from rushlight.fx.graph_module import _get_attr
from rushlight.fx.node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """One place: which node here is which node of the pattern."""

    anchors: list
    nodes_map: dict = field(default_factory=dict)  # pattern node -> node
    placeholder_nodes: list = field(default_factory=list)  # what the pattern's inputs are here
    returning_nodes: list = field(default_factory=list)  # what it returns
    name_node_map: dict = field(default_factory=dict)

    def __copy__(self):
        return InternalMatch(
            anchors=self.anchors,
            nodes_map=self.nodes_map.copy(),
            placeholder_nodes=self.placeholder_nodes.copy(),
            returning_nodes=self.returning_nodes.copy(),
        )


class SubgraphMatcher:
    """Finds all places where a pattern fits.

    Placeholders of the pattern stand for anything, unless ``match_placeholder``; other values must be
    equal, unless ``ignore_literals``.
    """

    def __init__(
        self,
        pattern,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=False,
    ):
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in list(pattern.nodes):
            if node.op == "call_module" and node.target == "_guards_fn":
                pattern.erase_node(
                    node
                )  # what an exported pattern checks of its inputs says nothing of a match
        for node in pattern.nodes:
            if node.op != "output" and not node.users and not node.is_impure():
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        if match_output:
            self.pattern_anchors = [output]
        else:
            self.pattern_anchors = [n for n in output.all_input_nodes if len(n.users) == 1]

    # -- single nodes

    def _match_attributes(self, pn, gn):
        """Attributes of one kind match: a pattern's weights stand for any."""
        theirs, ours = (
            _get_attr(pn.graph.owning_module, pn.target),
            _get_attr(gn.graph.owning_module, gn.target),
        )
        if type(theirs) is not type(ours):
            return False
        if isinstance(theirs, torch.Tensor):
            return True
        raise RuntimeError(f"Unsupported type {theirs} when matching attributes")

    def _nodes_are_equal(self, pn, gn, node_name_match=""):
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.target == gn.target

    def _match_literals(self, pn, gn, match):
        """One of both is no node: a placeholder of the pattern may stand for a value."""
        if isinstance(pn, Node) and isinstance(gn, Node):
            raise AssertionError("pn and gn cannot both be Node")
        if isinstance(pn, Node):
            if pn.op != "placeholder" or self.match_placeholder:
                return False
            if pn in match.nodes_map:
                return match.nodes_map[pn] == gn
            match.nodes_map[pn] = gn
            return True
        if isinstance(gn, Node):
            return False
        return type(gn) is type(pn) and gn == pn

    # -- with what leads to them

    def _match_nodes(self, pn, gn, match, node_name_match=""):
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if gn in match.nodes_map.values() or not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        saved = copy.copy(match)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder" or self._match_arguments(pn, gn, match):
            return True
        match.nodes_map = saved.nodes_map
        return False

    def _match_arguments(self, pn, gn, match):
        pairs = _paired_arguments(pn, gn)
        return pairs is not None and self._match_argument(pairs[0], pairs[1], match)

    def _match_argument(self, p, g, match):
        if isinstance(p, list) and isinstance(g, list):
            return len(p) == len(g) and all(self._match_argument(a, b, match) for a, b in zip(p, g))
        if isinstance(p, dict) and isinstance(g, dict):
            return p.keys() == g.keys() and all(self._match_argument(p[k], g[k], match) for k in p)
        if isinstance(p, Node) and isinstance(g, Node):
            return self._match_nodes(p, g, match)
        if isinstance(p, Node) or isinstance(g, Node):
            return self._match_literals(p, g, match)
        return self.ignore_literals or self._match_literals(p, g, match)

    # -- the search

    def match(self, graph, node_name_match=""):
        """All matches in a graph that can be one node without a cycle; of overlapping ones, the first."""
        from rushlight.fx.passes.utils.fuser_utils import validate_partition  # which imports this

        candidates = {
            anchor: [n for n in graph.nodes if self._nodes_are_equal(anchor, n, node_name_match)]
            for anchor in self.pattern_anchors
        }
        found = []

        def extend(i, match):
            if i == len(self.pattern_anchors):
                match.placeholder_nodes = [match.nodes_map[p] for p in self.pattern_placeholder_nodes]
                match.returning_nodes = [match.nodes_map[p] for p in self.pattern_returning_nodes]
                found.append(match)
                return
            for node in candidates[self.pattern_anchors[i]]:
                trial = copy.copy(match)
                if self._match_nodes(self.pattern_anchors[i], node, trial, node_name_match):
                    extend(i + 1, trial)

        extend(0, InternalMatch(anchors=self.pattern_anchors))
        found = [match for match in _distinct(found) if self._is_contained(match.nodes_map)]
        found = [match for match in found if validate_partition([*_computed(match)])]
        return self._without_overlaps(found) if self.remove_overlapping_matches else found

    def _is_contained(self, nodes_map):
        """Nobody outside uses what lies within, except what the pattern returns."""
        inside = {gn: pn for pn, gn in nodes_map.items() if isinstance(gn, Node)}
        for gn, pn in inside.items():
            if pn.op == "placeholder" or pn in self.pattern_returning_nodes:
                continue
            if any(user not in inside for user in gn.users):
                return False
        return True

    def _without_overlaps(self, matches):
        kept, taken = [], set()
        for match in matches:
            own = _computed(match)
            if own.isdisjoint(taken):
                kept.append(match)
                taken |= own
        return kept


def _computed(match):
    """The nodes of a match that are replaced."""
    return {gn for pn, gn in match.nodes_map.items() if pn.op not in ("placeholder", "output")}


def _paired_arguments(pn, gn):
    """The arguments of both nodes, in one order; None if they do not correspond."""
    if pn.op == "call_function" and hasattr(pn.target, "_schema"):
        both = [_by_schema(n) for n in (pn, gn)]
    elif len(pn.args) == len(gn.args) and sorted(pn.kwargs) == sorted(gn.kwargs):
        both = [[*n.args, *(n.kwargs[k] for k in sorted(n.kwargs))] for n in (pn, gn)]
    elif pn.op == "call_function":
        both = [_normalized(n) for n in (pn, gn)]
        if None in both:
            return None
    else:
        return None
    return _plain(both[0]), _plain(both[1])


def _plain(value):
    """Without the immutable classes, so that structures compare."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _by_schema(node):
    values = []
    for i, argument in enumerate(node.target._schema.arguments):
        if argument.name in node.kwargs:
            values.append(node.kwargs[argument.name])
        elif not argument.kwarg_only and i < len(node.args):
            values.append(node.args[i])
        else:
            values.append(argument.default_value if argument.has_default_value() else None)
    return values


def _normalized(node):
    pair = node.normalized_arguments(node.graph.owning_module, normalize_to_only_use_kwargs=True)
    return None if pair is None else [pair.kwargs[k] for k in sorted(pair.kwargs)]


def _distinct(matches):
    """Without repetitions: the same nodes may be found through several anchors."""
    seen, result = defaultdict(int), []
    for match in matches:
        key = tuple(id(match.nodes_map[pn]) for pn in sorted(match.nodes_map))
        if not seen[key]:
            result.append(match)
        seen[key] += 1
    return result
