"""Names of modules, and the parametrization that multiplies a weight by its mask."""

from itertools import chain

from rushlight import nn
from rushlight.nn.utils.parametrize import is_parametrized, type_before_parametrizations

__all__ = [
    "FakeSparsity",
    "fqn_to_module",
    "get_arg_info_from_tensor_fqn",
    "module_contains_param",
    "module_to_fqn",
    "swap_module",
]


def module_contains_param(module, parametrization):
    """Whether a tensor of the module has a parametrization of this class."""
    if not is_parametrized(module):
        return False
    return any(
        isinstance(step, parametrization) for steps in module.parametrizations.values() for step in steps
    )


def swap_module(mod, mapping):
    """What ``mapping`` has in place of a module's class, made by its ``from_dense``; else the module itself.

    Hooks of the module stay with what replaces it, which goes to the module's device.
    """
    kind = type_before_parametrizations(mod)
    if kind not in mapping:
        return mod
    made = mapping[kind].from_dense(mod)
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        made.register_forward_hook(hook)
    devices = {tensor.device for tensor in chain(mod.parameters(), mod.buffers())}
    if len(devices) > 1:
        raise AssertionError(
            f"swap_module only works with cpu or single-device CUDA modules, but got devices {devices}"
        )
    for device in devices:
        made.to(device)
    return made


def module_to_fqn(model, module, prefix=""):
    """The dotted name of a module within a model, or None where it is no part of that."""
    if module is model:
        return ""
    for name, child in model.named_children():
        rest = module_to_fqn(child, module, ".")
        if isinstance(rest, str):
            return prefix + name + rest
    return None


def fqn_to_module(model, path):
    """What has a dotted name within a model: a module or a tensor; None where nothing has."""
    for name in path.split(".") if path else ():
        model = getattr(model, name, None)
    return model


def get_arg_info_from_tensor_fqn(model, tensor_fqn):
    """A tensor's full name taken apart: its own, its module's, and that module."""
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    return {
        "module_fqn": module_fqn,
        "module": fqn_to_module(model, module_fqn),
        "tensor_name": tensor_name,
        "tensor_fqn": tensor_fqn,
    }


class FakeSparsity(nn.Module):
    """A parametrization: the tensor times a mask.

    The mask may change its elements; it stays one object, which the sparsifier has too. It is in no state,
    as the sparsifier keeps it.

    Args:
        mask: ones and zeros, of the tensor's shape.
    """

    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x):
        if self.mask.shape != x.shape:
            raise AssertionError(f"mask shape ({self.mask.shape}) must match x shape ({x.shape})")
        return self.mask * x

    def state_dict(self, *args, **kwargs):
        return {}
