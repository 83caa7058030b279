"""Programs without reads of numbers that never change, as the scales in the buffers of `convert_fx`."""

import copy

import rushlight as torch
from rushlight import fx
from rushlight._higher_order_ops._regions import module_of

from ._align import writes

_READ = torch.ops.aten._local_scalar_dense.default  # type: ignore[attr-defined]


def with_fixed_numbers(program):
    """The same program, with the number in place of each read of a tensor that it has and never writes."""
    fixed = _fixed_tensors(program)
    if not any(node.target is _READ and node.args[0].name in fixed for node in program.graph.nodes):
        return program
    made, graph = copy.copy(program), fx.Graph()
    graph.output(graph.graph_copy(program.graph, {}))
    for node in list(graph.nodes):
        if node.target is _READ and node.args[0].name in fixed:
            _replace(node, fixed[node.args[0].name].item())
            graph.erase_node(node)
    made.graph_module = module_of(graph)
    return made


def _replace(node, number):
    def value(argument):
        return number if argument is node else argument

    for user in list(node.users):
        user.args, user.kwargs = fx.map_arg(user.args, value), fx.map_arg(user.kwargs, value)


def _fixed_tensors(program):
    """By the name of its node, each tensor that belongs to the program and that nothing writes to."""
    nodes, signature = list(program.graph.nodes), program.graph_signature
    held = {**program.state_dict, **program.constants}
    changed = {spec.target for spec in signature.output_specs if spec.target is not None}
    written = any(writes(node) for node in nodes)
    places = [node for node in nodes if node.op == "placeholder"]
    found = {}
    for node, spec in zip(places, signature.input_specs):
        tensor = held.get(spec.target)
        if isinstance(tensor, torch.Tensor) and tensor.numel() == 1 and spec.target not in changed:
            # A view of it may be what a step writes to.
            if not written or all(user.target is _READ for user in node.users):
                found[node.name] = tensor
    return found
