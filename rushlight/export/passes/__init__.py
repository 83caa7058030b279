"""Changes of exported programs: `move_to_device_pass`."""

from __future__ import annotations

import copy

import rushlight as torch
from rushlight import fx
from rushlight.export.exported_program import ExportedProgram
from rushlight.fx.node import map_aggregate
from rushlight.utils import _pytree as pytree

__all__ = ["move_to_device_pass"]


def move_to_device_pass(
    ep: ExportedProgram, location: torch.device | str | dict[str, str]
) -> ExportedProgram:
    """The program on another device: its tensors, and the devices that its operators name.

    ``location`` is a device for everything, or says for each device of the program where its things go.
    """

    def target(device):
        if isinstance(location, dict):
            return torch.device(location.get(str(device), device))
        return torch.device(location)

    def moved(value):
        if not isinstance(value, torch.Tensor) or value.device == target(value.device):
            return value
        there = value.detach().to(target(value.device))
        if isinstance(value, torch.nn.Parameter):
            return torch.nn.Parameter(there, requires_grad=value.requires_grad)
        return there.requires_grad_(value.requires_grad)

    def renamed(argument):
        return target(argument) if isinstance(argument, torch.device) else argument

    made = copy.copy(ep)
    made.state_dict = {name: moved(tensor) for name, tensor in ep.state_dict.items()}
    made.constants = {name: moved(tensor) for name, tensor in ep.constants.items()}
    made.example_inputs = pytree.tree_map(moved, ep.example_inputs)
    made.graph_module = fx.GraphModule(ep.graph_module, copy.deepcopy(ep.graph))
    for node in made.graph.nodes:
        node.args, node.kwargs = map_aggregate((node.args, node.kwargs), renamed)
        if "val" in node.meta:
            node.meta["val"] = pytree.tree_map(moved, node.meta["val"])
    made.graph_module.recompile()
    return made
