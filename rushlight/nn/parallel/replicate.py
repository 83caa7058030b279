"""Copies of a module on several devices, of whose gradients the original's parameters get the sum."""

import rushlight as torch
from rushlight import Tensor
from rushlight.nn.modules.module import Module

from .scatter_gather import _device

__all__ = ["replicate"]


def replicate(network: Module, devices, detach: bool = False) -> list[Module]:
    """One copy of `network` for each of `devices` (device or int).

    Parameters of the copies are results of copies of `network`'s, through which gradients flow back (with
    `detach`: none do). The buffers of the first device are `network`'s own: running statistics are kept.

    Raises: RuntimeError where a module cannot be copied (scripted ones).

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> copies = torch.nn.parallel.replicate(layer, ["cpu", "cpu"])
        >>> sum(copy(torch.ones(2)) for copy in copies).backward(), layer.weight.grad
        (None, tensor([[2., 2.]]))
    """
    modules = list(network.modules())
    for module in modules:
        if isinstance(module, torch.jit.ScriptModule):
            raise RuntimeError(
                f"replicate: {type(module).__name__} is scripted or traced, and such modules cannot be "
                "copied to several devices: replicate the module that it was made of"
            )
    replicas = []
    for index, device in enumerate(map(_device, devices)):
        copies: dict[int, Tensor] = {}  # parameters that are shared stay so
        copied = {id(module): module._replicate_for_data_parallel() for module in modules}
        for module in modules:
            copy = copied[id(module)]
            for name, child in module._modules.items():
                copy._modules[name] = None if child is None else copied[id(child)]
            for name, parameter in module._parameters.items():
                if parameter is None:
                    copy._parameters[name] = None
                    continue
                there = copies.get(id(parameter))
                if there is None:
                    there = copies[id(parameter)] = _copy_of(parameter, device, detach)
                # As an attribute: no parameter, since it is no leaf.
                object.__setattr__(copy, name, there)
                copy._former_parameters = {**copy.__dict__.get("_former_parameters", {}), name: there}
            for name, buffer in module._buffers.items():
                if buffer is None or index == 0 and buffer.device == device:
                    continue
                with torch.no_grad():
                    copy._buffers[name] = buffer.to(device, non_blocking=True, copy=True)
        replicas.append(copied[id(network)])
    return replicas


def _copy_of(parameter: Tensor, device: torch.device, detach: bool) -> Tensor:
    given = parameter.detach() if detach else parameter
    # A result of its own even where it is there already: the copy's hooks and views are its own.
    return given.to(device, non_blocking=True) if given.device != device else given.view_as(given)
