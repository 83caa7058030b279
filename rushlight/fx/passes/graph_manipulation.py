"""Small edits and measures of graphs."""

from typing import NamedTuple

from rushlight.fx.graph import Graph

from .shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "get_size_of_all_nodes",
    "get_size_of_node",
    "get_tensor_meta",
    "replace_target_nodes_with",
    "size_bytes",
]


class size_bytes(NamedTuple):  # noqa: N801 - PyTorch's name
    """Bytes of a node's value, and with the parameters it uses."""

    output_size: int
    total_size: int


def replace_target_nodes_with(fx_module, old_op, old_target, new_op, new_target):
    """Change the kind and target of nodes."""
    graph, env = Graph(), {}
    for node in fx_module.graph.nodes:
        env[node] = graph.node_copy(node, lambda n: env[n])
        if node.op == old_op and node.target == old_target:
            env[node].op, env[node].target = new_op, new_target
    fx_module.graph = graph


def get_tensor_meta(node):
    """What ShapeProp found of the node."""
    meta = node.meta.get("tensor_meta")
    if not isinstance(meta, TensorMetadata):
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return meta


def _bytes(shape, dtype):
    return shape.numel() * dtype.itemsize


def get_size_of_node(fx_module, node):
    """The bytes of one node."""
    total = 0
    if node.op == "call_module":
        module = dict(fx_module.named_modules())[node.target]
        total = sum(p.nbytes for p in module.parameters())
    meta = get_tensor_meta(node)
    output = _bytes(meta.shape, meta.dtype)
    return size_bytes(output, total + output)


def get_size_of_all_nodes(fx_module, args=None):
    """Note the bytes of each node as ``node.size_bytes``."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)
