"""Facts about the user's program that travel from a graph that is run to the nodes it makes."""

from __future__ import annotations

import contextlib
import copy
import enum
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.fx.graph import Graph
    from rushlight.fx.node import Node

__all__ = [
    "NodeSource",
    "NodeSourceAction",
    "annotate",
    "format_stack",
    "get_current_meta",
    "get_graph_provenance_json",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "reset_grad_fn_seq_nr",
    "set_current_meta",
    "set_grad_fn_seq_nr",
    "set_stack_trace",
]

current_meta: dict = {}
should_preserve_node_meta = False


class NodeSourceAction(enum.Enum):
    """What a pass did to make a node."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """Which node of an earlier graph a node came from, by which pass."""

    def __init__(self, node: Node, pass_name="", action=None) -> None:
        actions = [action] if isinstance(action, NodeSourceAction) else list(action or [])
        self.pass_name, self.action = pass_name, actions
        self.node_info = node and {"name": node.name, "target": str(node.target), "graph_id": id(node.graph)}
        self.from_node = copy.deepcopy(node.meta.get("from_node", [])) if node else []

    @property
    def name(self):
        return self.node_info["name"] if self.node_info else ""

    @property
    def target(self):
        return self.node_info["target"] if self.node_info else ""

    @property
    def graph_id(self):
        return self.node_info["graph_id"] if self.node_info else -1

    def to_dict(self):
        """As plain values, for JSON."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": "+".join(action.name.lower() for action in self.action),
            "from_node": [source.to_dict() for source in self.from_node],
        }


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True):
    """Within it, nodes that a tracer makes take over the current meta."""
    global should_preserve_node_meta, current_meta
    saved = should_preserve_node_meta, current_meta
    should_preserve_node_meta, current_meta = enable, dict(current_meta)
    try:
        yield
    finally:
        should_preserve_node_meta, current_meta = saved


def has_preserved_node_meta() -> bool:
    return should_preserve_node_meta


def get_current_meta() -> dict[str, Any]:
    """What the node that is being run says of itself."""
    return current_meta


@contextlib.contextmanager
def set_current_meta(node: Node, pass_name=""):
    """Within it, `node` is what new nodes come from."""
    global current_meta
    if not (should_preserve_node_meta and node.meta):
        yield
        return
    saved = current_meta
    current_meta = dict(node.meta)
    source = NodeSource(node, pass_name, NodeSourceAction.CREATE)
    current_meta["from_node"] = [source]
    try:
        yield
    finally:
        current_meta = saved


def set_stack_trace(stack: list[str]) -> None:
    """Let new nodes carry this stack, a list of lines."""
    if should_preserve_node_meta and stack:
        current_meta["stack_trace"] = "".join(stack)


@contextlib.contextmanager
def annotate(annotation_dict) -> Any:
    """Within it, nodes get these entries in ``meta["custom"]``."""
    global current_meta
    saved = current_meta
    current_meta = {**saved, "custom": {**saved.get("custom", {}), **annotation_dict}}
    try:
        yield
    finally:
        current_meta = saved


def set_grad_fn_seq_nr(seq_nr):
    if should_preserve_node_meta:
        current_meta.setdefault("grad_fn_seq_nr", []).append(seq_nr)
        current_meta["in_grad_fn"] = current_meta.get("in_grad_fn", 0) + 1


def reset_grad_fn_seq_nr():
    if should_preserve_node_meta and current_meta.get("in_grad_fn"):
        current_meta["in_grad_fn"] -= 1
        current_meta["grad_fn_seq_nr"] = current_meta["grad_fn_seq_nr"][:-1]


def format_stack() -> list[str]:
    """The current stack, as lines."""
    if should_preserve_node_meta and "stack_trace" in current_meta:
        return [current_meta["stack_trace"]]
    return traceback.format_list(traceback.extract_stack()[:-1])


def get_graph_provenance_json(graph: Graph):
    """For each node with a history, where it came from."""
    return {
        node.name: [source.to_dict() for source in node.meta["from_node"]]
        for node in graph.nodes
        if node.meta.get("from_node")
    }
