"""`replace_pattern`: rewrite all places where a small program occurs in a module's graph."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import rushlight as torch

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """Where a pattern was found: its last node, and which node is which."""

    anchor: Node
    nodes_map: dict


@dataclass
class ReplacedPatterns:
    """A match, and the nodes that took its place."""

    anchor: Node
    nodes_map: dict
    replacements: list


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule, replacement: Callable[..., Any] | GraphModule
) -> list[Any]:
    """Replace each occurrence of `pattern` in the module by `replacement`: functions, modules or graphs.

    >>> replace_pattern(traced, lambda x, y: torch.cat([x, y]).sum(), lambda x, y: x.sum() + y.sum())
    """
    return [Match(m.anchor, m.nodes_map) for m in _replace_pattern(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable[..., Any] | Graph | GraphModule,
    replacement: Callable[..., Any] | Graph | GraphModule | None = None,
    match_filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[..., Any] | None = None,
    node_name_match: str = "",
) -> list[Any]:
    """As `replace_pattern`, but a match must pass all filters ``f(match, graph, pattern graph)``, and the
    replacement may be made for each match by ``replacement_callback(match, graph, pattern graph)``."""
    return _replace_pattern(
        gm, pattern, replacement, match_filters, ignore_literals, replacement_callback, node_name_match
    )


def _graph_of(program):
    if isinstance(program, GraphModule):
        return program.graph
    return program if isinstance(program, Graph) else symbolic_trace(program).graph


def _replace_pattern(
    gm,
    pattern,
    replacement=None,
    match_filters=None,
    ignore_literals=False,
    replacement_callback: Callable[..., Any] | None = None,
    node_name_match="",
):
    from .passes.utils.matcher_utils import SubgraphMatcher

    graph, pattern_graph = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(graph, node_name_match=node_name_match)
        if all(accepts(match, graph, pattern_graph) for accepts in match_filters or [])
    ]
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either replacement GraphModule or Callable")
    common = _graph_of(replacement) if replacement is not None else None
    if common is not None:
        for node in list(common.nodes):
            if node.op == "call_module" and node.target == "_guards_fn":
                common.erase_node(node)
    replaced: list = []
    changed: dict = {}
    for match in matches:
        new = common
        if new is None and replacement_callback is not None:
            new = replacement_callback(match, graph, pattern_graph)
        replaced.append(_replace_one(graph, pattern_graph, match, new, changed))
    gm.recompile()
    if isinstance(replacement, torch.nn.Module):
        _replace_attributes(gm, replacement)
    return replaced


def _replace_one(graph, pattern_graph, match, new_graph, changed):
    """Put a copy of `new_graph` where the match is; `changed` says what earlier matches became."""
    placeholders = [n for n in new_graph.nodes if n.op == "placeholder"]
    if len(match.placeholder_nodes) != len(placeholders):
        raise AssertionError(
            f"the replacement takes {len(placeholders)} inputs, the pattern {len(match.placeholder_nodes)}"
        )
    values = [changed.get(n, n) if isinstance(n, Node) else n for n in match.placeholder_nodes]
    val_map = dict(zip(placeholders, values))
    with _before_users(graph, match):
        returned = graph.graph_copy(new_graph, val_map)
    returned = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    if len(match.returning_nodes) != len(returned):
        raise AssertionError(
            f"the replacement returns {len(returned)} values, the pattern {len(match.returning_nodes)}"
        )
    for old, new in zip(match.returning_nodes, returned):
        old.replace_all_uses_with(new)
        changed[old] = new
    for pattern_node in reversed(pattern_graph.nodes):
        if pattern_node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[pattern_node])
    made = [n for n in val_map.values() if isinstance(n, Node) and n not in values]
    return ReplacedPatterns(anchor=match.anchors[0], nodes_map=match.nodes_map, replacements=made)


def _before_users(graph, match):
    """The replacement stands before the first node that uses what the pattern returned."""
    users = [user for node in match.returning_nodes for user in node.users]
    if users:
        return graph.inserting_before(min(users))
    return graph.inserting_after(max(match.returning_nodes))


def _replace_attributes(gm, replacement):
    """Bring along what the replacement's nodes refer to."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        if _attribute(gm, node.target) is not None:
            continue
        value = _attribute(replacement, node.target)
        if value is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target '
                f"{node.target}, but the referenced attribute does not exist in the replacement GraphModule"
            )
        value = copy.deepcopy(value)
        if isinstance(value, torch.nn.Module):
            gm.add_submodule(node.target, value)
        else:
            path, _, name = node.target.rpartition(".")
            setattr(gm.get_submodule(path), name, value)
    gm.graph.lint()


def _attribute(module, target):
    for name in target.split("."):
        module = getattr(module, name, None)
    return module
