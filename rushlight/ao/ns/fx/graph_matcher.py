"""Operations of two graphs, paired from their ends on."""

import enum
from collections import defaultdict

from rushlight.ao.quantization.observer import _is_activation_post_process

from .mappings import get_base_name_for_op, get_base_name_to_sets_of_related_ops, get_unmatchable_types_map
from .ns_types import NSSubgraph
from .pattern_utils import end_node_matches_reversed_fusion, get_reversed_fusions, get_type_a_related_to_b
from .utils import first_operand

__all__ = ["GraphMatchingException", "SubgraphTypeRelationship", "get_matching_subgraph_pairs"]


class GraphMatchingException(Exception):
    """Two graphs have operations that do not stand for each other."""


class SubgraphTypeRelationship(enum.Enum):
    """How two operations are to each other."""

    EQUAL = enum.auto()
    EQUAL_BUT_UKNOWN = enum.auto()  # PyTorch's spelling
    RELATED_BUT_NOT_EQUAL = enum.auto()
    NOT_RELATED = enum.auto()


def _kind(node, modules):
    """What a node calls: a function, the name of a method, or the class of a module."""
    return type(modules[str(node.target)]) if node.op == "call_module" else node.target


def _subgraphs(gm, unmatchable):
    """The operations of a graph that can be compared, from its end on."""
    modules, seen = dict(gm.named_modules(remove_duplicate=False)), set()
    fusions = get_reversed_fusions()
    never = {
        "call_function": unmatchable["funs_unmatchable"],
        "call_method": unmatchable["meths_unmatchable"],
        "call_module": unmatchable["mods_unmatchable"],
    }
    output = next(node for node in gm.graph.nodes if node.op == "output")
    stack = list(output.all_input_nodes)
    while stack:
        end = stack.pop()
        if end in seen:
            continue
        start = base = end
        for parts, place in fusions:
            if not end_node_matches_reversed_fusion(end, parts, gm, seen):
                continue
            for steps in range(1, len(parts)):
                seen.add(start)
                start = first_operand(start)
                if steps == len(parts) - 1 - place:
                    base = start
            break
        seen.add(start)
        stack += start.all_input_nodes
        if base.op not in never:
            continue
        kind = _kind(base, modules)
        watches = base.op == "call_module" and _is_activation_post_process(modules[str(base.target)])
        if kind in never[base.op] or watches:
            continue
        yield NSSubgraph(start_node=start, end_node=end, base_op_node=base)


def _relationship(a, b, modules_a, modules_b, related):
    kinds = _kind(a.base_op_node, modules_a), _kind(b.base_op_node, modules_b)
    layers = [one.base_op_node.op == "call_module" for one in (a, b)]
    if layers[0] != layers[1] and kinds not in related:
        return SubgraphTypeRelationship.NOT_RELATED
    if kinds not in related:
        same = kinds[0] == kinds[1]
        kind = SubgraphTypeRelationship
        return kind.EQUAL_BUT_UKNOWN if same else kind.NOT_RELATED
    same = kinds[0] == kinds[1]
    return SubgraphTypeRelationship.EQUAL if same else SubgraphTypeRelationship.RELATED_BUT_NOT_EQUAL


def get_matching_subgraph_pairs(
    gm_a, gm_b, base_name_to_sets_of_related_ops=None, unmatchable_types_map=None
):
    """Pairs of operations by a name for each, in the order of the calls.

    Graphs of which one has more operations, or others, are refused by a `GraphMatchingException`.
    """
    sets = base_name_to_sets_of_related_ops
    sets = get_base_name_to_sets_of_related_ops() if sets is None else sets
    unmatchable = get_unmatchable_types_map() if unmatchable_types_map is None else unmatchable_types_map
    related = get_type_a_related_to_b(sets)
    modules = [dict(gm.named_modules(remove_duplicate=False)) for gm in (gm_a, gm_b)]
    sides = [list(_subgraphs(gm, unmatchable)) for gm in (gm_a, gm_b)]
    found, counts = {}, defaultdict(int)
    for a, b in zip(*sides):
        how = _relationship(a, b, *modules, related)
        if how is SubgraphTypeRelationship.NOT_RELATED:
            shown = [(one, _kind(one.base_op_node, m)) for one, m in zip((a, b), modules)]
            raise GraphMatchingException(f"The subgraphs {shown[0]} and {shown[1]} are not related")
        if how is SubgraphTypeRelationship.EQUAL_BUT_UKNOWN:
            continue
        name = get_base_name_for_op(sets, _kind(a.base_op_node, modules[0]))
        found[f"base_op_{name}_{counts[name]}"] = a, b
        counts[name] += 1
    if len(sides[0]) != len(sides[1]):
        raise GraphMatchingException(
            f"Trying to match graphs of {len(sides[0])} and {len(sides[1])} operations: "
            f"{[s.base_op_node for s in sides[0]]} and {[s.base_op_node for s in sides[1]]}"
        )
    return dict(reversed(found.items()))
