"""What comparisons of two graphs are written in."""

import enum
from typing import Any, NamedTuple

from rushlight.fx import Node

__all__ = [
    "NSNodeTargetType",
    "NSResultsType",
    "NSSingleResultType",
    "NSSingleResultValuesType",
    "NSSubgraph",
]


class NSSingleResultValuesType(str, enum.Enum):
    """What was noted of a node."""

    WEIGHT = "weight"
    NODE_OUTPUT = "node_output"
    NODE_INPUT = "node_input"


class NSSubgraph(NamedTuple):
    """Nodes that compute one operation, such as a layer and its ReLU; the base is the operation itself."""

    start_node: Node
    end_node: Node
    base_op_node: Node


NSSingleResultType = dict[str, Any]
NSResultsType = dict[str, dict[str, dict[str, list[NSSingleResultType]]]]
NSNodeTargetType = Any
