"""Small steps on graphs."""

import operator
from collections import namedtuple

import rushlight
from rushlight.fx import Graph, GraphModule, Node, map_arg
from rushlight.nn import functional as F

NodeInfo = namedtuple("NodeInfo", "op target")

__all__ = [
    "NodeInfo",
    "all_node_args_have_no_tensors",
    "assert_and_get_unique_device",
    "collect_producer_nodes",
    "create_getattr_from_value",
    "get_new_attr_name_with_prefix",
    "gives_states",
    "graph_module_from_producer_nodes",
    "node_arg_is_bias",
    "node_arg_is_weight",
    "taken_apart",
]


def _get_module(node, named_modules):
    """The module that a node calls."""
    return (
        named_modules[str(node.target)]
        if node.op == "call_module" and str(node.target) in named_modules
        else None
    )


def _input_positions(node):
    """Where a function's weight and bias stand, as its pattern says."""
    found = node.meta.get("input_type_to_index")
    if found:
        return found
    operands = {
        **{getattr(F, f"conv{d}d"): {"weight": 1, "bias": 2} for d in (1, 2, 3)},
        **{getattr(F, f"conv_transpose{d}d"): {"weight": 1, "bias": 2} for d in (1, 2, 3)},
        F.linear: {"weight": 1, "bias": 2},
        F.layer_norm: {"weight": 2, "bias": 3},
        F.group_norm: {"weight": 2, "bias": 3},
        F.instance_norm: {"weight": 3, "bias": 4},
    }
    return operands.get(node.target, {})


def _stands_for(node, arg, name):
    index = _input_positions(node).get(name)
    if index is not None and index < len(node.args) and node.args[index] is arg:
        return True
    return node.op == "call_function" and bool(_input_positions(node)) and node.kwargs.get(name) is arg


def node_arg_is_weight(node, arg):
    """Whether an argument is the node's weight."""
    return _stands_for(node, arg, "weight")


def node_arg_is_bias(node, arg):
    """Whether an argument is the node's bias."""
    return _stands_for(node, arg, "bias")


def get_new_attr_name_with_prefix(prefix):
    """A function that finds a name of this prefix that a module does not have."""
    prefix = prefix.replace(".", "_")

    def find(module):
        number = 0
        while hasattr(module, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    return find


def assert_and_get_unique_device(module):
    """The device of a module's parameters and buffers; None where there are none."""
    devices = {p.device for p in module.parameters()} | {b.device for b in module.buffers()}
    if {d.type for d in devices} == {"cpu", "meta"}:
        devices = {d for d in devices if d.type == "cpu"}
    if len(devices) > 1:
        raise AssertionError(
            f"prepare only works with cpu or single-device CUDA modules, but got devices {devices}"
        )
    return next(iter(devices)) if devices else None


def create_getattr_from_value(module, graph, prefix, value, device=None):
    """A buffer of this value, and the node that reads it."""
    name = get_new_attr_name_with_prefix(prefix)(module)
    device = assert_and_get_unique_device(module) if device is None else device
    if isinstance(value, rushlight.Tensor):
        value = value.detach().clone()
        value = value.to(device) if device is not None else value
    else:
        value = rushlight.tensor(value, device=device)
    module.register_buffer(name, value)
    return graph.create_node("get_attr", name)


def collect_producer_nodes(node):
    """The nodes that a node's value comes from, itself first; None if an input of the graph is among them."""
    found, frontier = [node], [node]
    while frontier:
        for arg in _all_args(frontier.pop()):
            if not isinstance(arg, Node):
                continue
            if arg.op == "placeholder":
                return None
            found.append(arg)
            if not (arg.op == "call_function" and arg.target is getattr):
                frontier.append(arg)
    return found


def _all_args(node):
    found = []
    map_arg([list(node.args), list(node.kwargs.values())], found.append)
    return found


def graph_module_from_producer_nodes(root, producer_nodes):
    """A graph of these nodes, which compute a value from attributes."""
    if not producer_nodes:
        raise AssertionError("list of producer nodes can not be empty")
    graph, copies = Graph(), {}
    for node in reversed(producer_nodes):
        copies[node] = graph.node_copy(node, lambda other: copies[other])
    graph.output(copies[producer_nodes[0]])
    return GraphModule(root, graph)


def gives_states(module):
    """Whether a module gives (result, (state, cell)), as LSTM does, and watches all three."""
    from rushlight.ao.nn import quantizable

    return isinstance(module, quantizable.LSTM)


def taken_apart(node):
    """The nodes that take parts of a tuple, and parts of these."""
    parts = [user for user in node.users if user.op == "call_function" and user.target is operator.getitem]
    return parts + [inner for part in parts for inner in taken_apart(part)]


def all_node_args_have_no_tensors(node, modules, cache):
    """Whether a node's operands are numbers only: then nothing of it is watched."""
    if node in cache:
        return cache[node]
    if node.op == "placeholder" or node.op == "get_attr":
        result = False
    elif node.op == "call_module":
        result = False
    elif node.op == "call_function" and node.target is getattr and node.args[1] in ("ndim", "shape"):
        result = True
    elif node.op == "call_method" and node.target == "size":
        result = True
    else:
        result = all(all_node_args_have_no_tensors(arg, modules, cache) for arg in _all_args(node))
    cache[node] = result
    return result
