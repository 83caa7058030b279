"""The parts of a graph that came from one function or module of the user's program."""

from dataclasses import dataclass, field

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """Nodes of one origin, and how the rest of the graph meets them."""

    nodes: list
    source: object
    input_nodes: list = field(default_factory=list)
    output_nodes: list = field(default_factory=list)
    params: list = field(default_factory=list)


def _partition(nodes, source):
    inside, inputs, outputs, params = set(nodes), {}, [], []
    for node in nodes:
        for used in node.all_input_nodes:
            if used not in inside and used.op != "get_attr":
                inputs[used] = None
        if node.op == "get_attr":
            params.append(node)
        if any(user not in inside for user in node.users):
            outputs.append(node)
    return SourcePartition(nodes, source, list(inputs), outputs, params)


def _origin(node):
    """What the node came from, and which use of it: a function or module, or the name of a torch function."""
    stack = node.meta.get("source_fn_stack")
    if stack:
        return stack[-1]
    name, function = node.meta.get("torch_fn") or ("", "")
    return name, function.rpartition(".")[2]


def _module_of(node, classes):
    """The innermost module that a node of an exported program ran in: its path, and its class if it is
    wanted."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if not stack:
        return "", None
    path, kind = stack[-1]
    return path, kind if kind in classes.values() else classes.get(kind)


def get_source_partitions(graph, wanted_sources, filter_fn=None):
    """For each wanted source, the groups of nodes that came from one use of it.

    In exported programs sources are names: "linear" for all that came from ``torch.nn.functional.linear``;
    and classes, for all that ran in a module of one.
    """
    groups = {}
    classes = {}
    for source in wanted_sources:
        if isinstance(source, type):
            for top in ("torch", source.__module__.partition(".")[0]):
                classes[f"{top}.{source.__module__.partition('.')[2]}.{source.__qualname__}"] = source
    for node in graph.nodes:
        name, source = _origin(node)
        if classes and source not in wanted_sources:
            name, source = _module_of(node, classes)
        if source in wanted_sources and (filter_fn is None or filter_fn(node)):
            groups.setdefault(source, {}).setdefault(name, []).append(node)
    return {s: [_partition(nodes, s) for nodes in uses.values()] for s, uses in groups.items()}


def check_subgraphs_connected(subgraph1, subgraph2):
    """Whether the second uses what the first makes."""
    made = set(subgraph1.nodes)
    return any(used in made for node in subgraph2.nodes for used in node.all_input_nodes)
