"""A part of a module as a module of its own."""

import rushlight as torch
from rushlight.fx.graph_module import GraphModule

from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(torch.nn.Module):
    """Holds submodules under given names."""

    def __init__(self, d):
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(gm, subgraph, comp_name="", class_name="GraphModule"):
    """A module from a graph that refers to parts of `gm`; also says where each target came from."""
    held, moved = HolderModule({}), {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        *path, name = node.target.split(".")
        owner = held
        for part in path:
            if not hasattr(owner, part):
                owner.add_module(part, HolderModule({}))
            owner = getattr(owner, part)
        value = gm
        for part in (*path, name):
            value = getattr(value, part)
        setattr(owner, name, value)
        moved[f"{comp_name}.{node.target}" if comp_name else node.target] = node.target
    return GraphModule(held, subgraph, class_name), moved


def compare_graphs(left, right):
    """Whether two graphs compute the same by the same steps."""
    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    return len(matcher.match(right)) > 0
