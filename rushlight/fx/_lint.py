"""Whether a graph is well-formed."""

import rushlight as torch

from .node import map_arg


def check_graph(graph):
    """Raise if uses come before definitions, names repeat or targets are missing."""
    names, values = set(), set()
    for node in graph.nodes:
        _check_place(graph, node)
        map_arg(node.args, lambda arg, user=node: _check_argument(graph, values, names, arg, user))
        map_arg(node.kwargs, lambda arg, user=node: _check_argument(graph, values, names, arg, user))
        values.add(node)
        if node.name in names:
            raise RuntimeError(f"Node redefined name {node.name}!")
        names.add(node.name)
    if graph.owning_module is not None:
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                _check_target(graph.owning_module, node)


def _check_place(graph, node):
    if node.op not in ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output"):
        raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
    if node.graph is not graph:
        raise RuntimeError(f"Node '{node}' does not belong to this Graph.")
    if node not in graph._find_nodes_lookup_table:
        raise RuntimeError(f"Node '{node}' is not added to the side table")


def _check_argument(graph, values, names, arg, user):
    if arg.graph is not graph:
        raise RuntimeError(
            f"Argument '{arg}' of Node '{user}' does not belong to this Graph, but was used as an argument! "
            "If you are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() "
            f"to remap values\n{graph}"
        )
    if arg not in values:
        raise RuntimeError(
            f"Argument '{arg}' of Node '{user}' was used before it has been defined! Please check that Nodes "
            f"in the graph are topologically ordered\n{graph}"
        )


def _check_target(root, node):
    if not isinstance(node.target, str):
        raise ValueError(
            f"Node {node} target {node.target} has type {torch.typename(node.target)} but a str is expected"
        )
    owner, value = root, root
    atoms = node.target.split(".")
    for i, atom in enumerate(atoms):
        owner, value = value, getattr(value, atom, None)
        if value is None and not hasattr(owner, atom):
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute {atom} of "
                f"{'.'.join(atoms[:i])}"
            )
    if node.op == "call_module" and not isinstance(value, torch.nn.Module):
        raise RuntimeError(
            f"Node {node} target {node.target} {atoms[-1]} of {'.'.join(atoms[:-1])} does not reference an "
            "nn.Module"
        )
