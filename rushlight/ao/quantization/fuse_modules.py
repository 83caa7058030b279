"""Layers of a model, named by their paths, put together into fused ones."""

import copy

from rushlight import nn
from rushlight.nn.utils.parametrize import type_before_parametrizations

from .fuser_method_mappings import get_fuser_method

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def _home(model, path):
    """The module that holds what is at a path, and the name there."""
    *parents, name = path.split(".")
    for parent in parents:
        model = getattr(model, parent)
    return model, name


def fuse_known_modules(mod_list, is_qat, additional_fuser_method_mapping=None):
    """What the layers become: the fused one, then identities. Hooks go to where they still see the same."""
    fuse = get_fuser_method(
        tuple(type_before_parametrizations(m) for m in mod_list), additional_fuser_method_mapping
    )
    fused = fuse(is_qat, *mod_list)
    first, last = mod_list[0], mod_list[-1]
    for hook in first._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    first._forward_pre_hooks.clear()
    for hook in last._forward_hooks.values():
        fused.register_forward_hook(hook)
    last._forward_hooks.clear()
    rest = []
    for _ in mod_list[1:]:
        identity = nn.Identity()
        identity.training = first.training
        rest.append(identity)
    return [fused, *rest]


def _fuse(model, groups, is_qat, fuser_func, custom):
    additional = (custom or {}).get("additional_fuser_method_mapping", {})
    if all(isinstance(path, str) for path in groups):
        groups = [groups]
    for group in groups:
        homes = [_home(model, path) for path in group]
        parts = [getattr(home, name) for home, name in homes]
        for (home, name), part in zip(homes, fuser_func(parts, is_qat, additional)):
            setattr(home, name, part)


def _fuse_modules(model, modules_to_fuse, is_qat, inplace, fuser_func, fuse_custom_config_dict):
    if not inplace:
        model = copy.deepcopy(model)
    _fuse(model, modules_to_fuse, is_qat, fuser_func, fuse_custom_config_dict)
    return model


def fuse_modules(
    model, modules_to_fuse, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None
):
    """Fuse layers of a model in eval mode: a list of paths, or a list of such lists."""
    return _fuse_modules(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model, modules_to_fuse, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None
):
    """Fuse layers of a model that will be trained on."""
    return _fuse_modules(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
