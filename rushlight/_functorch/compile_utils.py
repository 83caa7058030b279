"""What compilers of graphs share: a graph without steps that another one makes, its inputs and outputs."""

import rushlight as torch
from rushlight import fx
from rushlight.utils import _pytree as pytree

__all__ = ["fx_graph_cse", "get_outputs", "get_placeholders", "strip_overloads"]


def get_placeholders(graph):
    """The nodes that stand for inputs."""
    return [node for node in graph.nodes if node.op == "placeholder"]


def get_outputs(graph):
    """What a graph returns, flat: nodes and plain values."""
    return pytree.tree_leaves(graph.output_node().args[0])


def strip_overloads(gm):
    """Let a graph call operators by name alone, in place: a script finds the overload by the arguments."""
    for node in gm.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload):
            node.target = node.target.overloadpacket
    gm.recompile()


def fx_graph_cse(fx_g):
    """A graph like `fx_g` in which each step with the same operands is made once.

    Random steps, and those that write, or whose inputs another one writes to, stay apart.
    """
    made, env, known = fx.Graph(), {}, {}
    written = _written(fx_g)
    for node in fx_g.nodes:
        key = None if node.op not in ("call_function", "get_attr") else _key(node, env, written)
        if key is not None and key in known:
            env[node] = known[key]
            continue
        env[node] = made.node_copy(node, env.__getitem__)
        if key is not None:
            known[key] = env[node]
    return made


def _key(node, env, written):
    """Equal for steps with the same result; None for one that has to stay."""
    target = node.target
    if not written.isdisjoint((node, *node.all_input_nodes)) or node.is_impure():
        return None
    if isinstance(target, torch._ops.OpOverload):
        if target._schema.is_mutable or torch.Tag.nondeterministic_seeded in target.tags:
            return None
    elif node.op == "call_function" and getattr(target, "__module__", "") not in ("_operator", "math"):
        return None  # a function that may draw numbers
    leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
    parts = []
    for leaf in leaves:
        if isinstance(leaf, slice):
            return None
        # 1, 1.0 and True are equal, and so are the zeros of both signs
        parts.append(env[leaf] if isinstance(leaf, fx.Node) else (type(leaf), repr(leaf)))
    return node.op, target, tuple(parts), str(spec)


def _written(graph):
    """The nodes whose memory a step writes to: the arguments, and what shares memory with them."""
    alias, found = {}, set()

    def root(node):
        while node in alias:
            node = alias[node]
        return node

    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None:
            continue
        for argument, given in zip(schema.arguments, node.args):
            if argument.alias_info is None or not isinstance(given, fx.Node):
                continue
            if argument.alias_info.is_write:
                found.add(root(given))
            alias[node] = given
    return {node for node in graph.nodes if root(node) in found}
