"""Types of the items of typed containers."""

from __future__ import annotations

import operator
import typing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.fx.graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Give nodes that take an item, or a field of a named tuple, the type that the container's type says."""
    for node in graph.nodes:
        if node.op != "call_function" or node.target not in (operator.getitem, getattr):
            continue
        container, place = node.args[0].type, node.args[1]
        if container is None:
            continue
        origin, inside = typing.get_origin(container), typing.get_args(container)
        if origin is list and inside:
            node.type = inside[0]
        elif origin is tuple and inside and isinstance(place, int):
            node.type = inside[0] if inside[-1] is ... else inside[place]
        elif isinstance(container, type) and hasattr(container, "_fields"):
            name = place if isinstance(place, str) else container._fields[place]
            node.type = typing.get_type_hints(container).get(name)
