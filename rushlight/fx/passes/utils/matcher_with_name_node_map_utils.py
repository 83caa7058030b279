"""Matching by a pattern that also says what some of its nodes are called."""

from rushlight.fx._codegen import CodeGen, _PyTreeCodeGen
from rushlight.fx.graph_module import GraphModule
from rushlight.utils import _pytree as pytree

from .matcher_utils import InternalMatch as InternalMatch
from .matcher_utils import SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm):
    """The pattern returns its values and a dict from names to nodes: take the dict off."""
    output = gm.graph.output_node()
    returned, codegen = output.args[0], gm.graph._codegen
    if isinstance(codegen, _PyTreeCodeGen) and codegen.pytree_info.out_spec is not None:
        returned = pytree.tree_unflatten(
            list(returned), codegen.pytree_info.out_spec
        )  # of an exported module
        gm.graph._codegen = CodeGen()
    *values, names = returned
    if not isinstance(names, dict):
        raise AssertionError(f"expected the pattern to return a dict of names last, got {names}")
    names = dict(names)
    first = values[0] if len(values) == 1 else tuple(values)
    output.args = (first,)
    gm.recompile()
    return gm, names


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A match has a `name_node_map` for the names that the pattern gives."""

    def __init__(
        self,
        pattern_gm,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=False,
    ):
        if not isinstance(pattern_gm, GraphModule):
            raise AssertionError(f"expected a GraphModule, got {type(pattern_gm).__name__}")
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        self.pattern_gm = pattern_gm
        super().__init__(
            pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals
        )

    def match(self, graph, node_name_match=""):
        matches = super().match(graph, node_name_match)
        for match in matches:
            match.name_node_map.update(
                {name: match.nodes_map[node] for name, node in self.name_node_map.items()}
            )
        return matches
