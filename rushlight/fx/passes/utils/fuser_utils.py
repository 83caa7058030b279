"""Replacing a set of nodes by a module that computes them."""

from rushlight.fx.graph import Graph
from rushlight.fx.node import Node

from ..tools_common import legalize_graph
from .common import lift_subgraph_as_module

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def topo_sort(nodes):
    """The nodes so that each comes after those of them that it uses."""
    inside, order, seen = set(nodes), [], set()
    pending = list(reversed(nodes))
    while pending:
        node = pending[-1]
        missing = [n for n in node.all_input_nodes if n in inside and n not in seen]
        if missing:
            pending += missing
            continue
        pending.pop()
        if node not in seen:
            seen.add(node)
            order.append(node)
    return order


def validate_partition(partition):
    """Whether no path leaves the set and comes back."""
    inside = set(partition)
    pending = [user for node in partition for user in node.users if user not in inside]
    seen = set()
    while pending:
        node = pending.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            pending += node.users
    return True


def fuse_as_graphmodule(gm, nodes, module_name, partition_lookup_table=None, *, always_return_tuple=False):
    """A module of the nodes; also what it takes and gives: (module, inputs, outputs)."""
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node not in gm.graph._find_nodes_lookup_table:
            raise AssertionError(f"{node} is not found in graph module {gm._get_name()}")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside, subgraph, env, inputs = set(nodes), Graph(), {}, []

    def here(node):
        if node in inside or node in env:
            return env[node]
        if node.op == "get_attr":
            env[node] = subgraph.node_copy(node)
            return env[node]
        env[node] = subgraph.placeholder(node.name, type_expr=node.type)
        env[node].meta = node.meta.copy()
        inputs.append(node)
        return env[node]

    for node in nodes:
        for used in node.all_input_nodes:
            if used not in inside:
                here(used)
    for node in nodes:
        env[node] = subgraph.node_copy(node, here)
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    results = tuple(env[node] for node in outputs)
    subgraph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    subgraph.lint()
    module, _ = lift_subgraph_as_module(gm, subgraph, comp_name="", class_name=module_name)
    return module, tuple(inputs), tuple(outputs)


def insert_subgm(gm, sub_gm, orig_inputs, orig_outputs):
    """Call a module with these inputs, in the place of the nodes that gave these outputs."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    with gm.graph.inserting_before(max(orig_outputs).next):
        call = gm.graph.call_module(name, args=orig_inputs)
        result = sub_gm.graph.output_node().args[0]
        if isinstance(result, Node):
            orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
            return gm
        import operator

        for i, old in enumerate(orig_outputs):
            item = gm.graph.call_function(operator.getitem, (call, i))
            old.replace_all_uses_with(item, propagate_meta=True)
    return gm


def erase_nodes(gm, nodes):
    """Erase nodes, users before what they use."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(gm, partitions, prefix="fused_", always_return_tuple=False):
    """Replace each set of nodes by a module ``fused_0``, ``fused_1`` and so on."""
    for i, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        module, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{i}", always_return_tuple=always_return_tuple
        )
        if outputs:  # otherwise nobody uses the nodes
            insert_subgm(gm, module, inputs, outputs)
        erase_nodes(gm, nodes)
    legalize_graph(gm)
    gm.recompile()
    return gm
