"""Scripted models for phones: `optimize_for_mobile` freezes them, lints say what should be mended first."""

from __future__ import annotations

import copy
from enum import Enum

from rushlight.jit import ScriptModule, freeze

__all__ = ["LintCode", "MobileOptimizerType", "generate_mobile_module_lints", "optimize_for_mobile"]


class LintCode(Enum):
    """What a lint is about."""

    BUNDLED_INPUT = 1
    REQUIRES_GRAD = 2
    DROPOUT = 3
    BATCHNORM = 4


class MobileOptimizerType(Enum):
    """Rewrites that callers may block. Only the first has an effect: weights are prepared when a model first
    runs, dropout does nothing in evaluation, and there is no Vulkan."""

    CONV_BN_FUSION = 0
    INSERT_FOLD_PREPACK_OPS = 1
    REMOVE_DROPOUT = 2
    FUSE_ADD_RELU = 3
    HOIST_CONV_PACKED_PARAMS = 4
    VULKAN_AUTOMATIC_GPU_TRANSFER = 6


def _require_script(module):
    if not isinstance(module, ScriptModule):
        raise TypeError(f"Got {type(module)}, but ScriptModule is expected.")


def optimize_for_mobile(
    script_module: ScriptModule,
    optimization_blocklist: set[MobileOptimizerType] | None = None,
    preserved_methods: list | None = None,
    backend: str = "CPU",
) -> ScriptModule:
    """A copy of the module in evaluation mode, frozen; normalization is folded unless that is blocked.

    Args:
        script_module (ScriptModule): the model; it stays as it is.
        optimization_blocklist (set of MobileOptimizerType): what is not to be done.
        preserved_methods (list of str): methods and attributes that stay; those of bundled inputs do.
        backend (str): ``"CPU"``; Vulkan and Metal are refused.

    Raises TypeError for other modules and unknown backends, AttributeError for names that the module lacks.
    """
    _require_script(script_module)
    kept = [str(name) for name in preserved_methods or ()]
    kept = list(dict.fromkeys([*kept, *_bundled_names(script_module)]))
    missing = [name for name in kept if not hasattr(script_module, name)]
    if missing:
        raise AttributeError(
            f"The following methods to preserve do not exist in script_module: {', '.join(missing)}"
        )
    if backend.lower() not in ("cpu", "vulkan", "metal"):
        raise TypeError("Unknown backend, must be one of 'CPU', 'Vulkan' or 'Metal'")
    if backend.lower() != "cpu":
        raise NotImplementedError(f"optimize_for_mobile: no {backend} here; use backend='CPU'")
    blocked = set(optimization_blocklist or ())
    folds = MobileOptimizerType.CONV_BN_FUSION not in blocked
    return freeze(copy.deepcopy(script_module).eval(), preserved_attrs=kept, optimize_numerics=folds)


def generate_mobile_module_lints(script_module: ScriptModule) -> list[dict[str, str]]:
    """What should be mended before the module is saved, each with the name of its `LintCode`."""
    _require_script(script_module)
    found = []
    if not hasattr(script_module, "_generate_bundled_inputs_for_forward"):
        advice = "add some with torch.utils.bundled_inputs.augment_model_with_bundled_inputs before saving"
        found.append((LintCode.BUNDLED_INPUT, f"No bundled input for forward: {advice}."))
    for name, parameter in script_module.named_parameters():
        if parameter.requires_grad:
            advice = "requires_grad_(False) saves memory in inference"
            found.append((LintCode.REQUIRES_GRAD, f"Param {name} requires grad: {advice}."))
    for operator in sorted(_operators(script_module.inlined_graph)):
        for word, code in (("dropout", LintCode.DROPOUT), ("batch_norm", LintCode.BATCHNORM)):
            if word in operator:
                advice = f"call eval() before saving, and optimize_for_mobile to drop {word}"
                found.append((code, f"Operator {operator} exists: {advice}."))
    return [{"name": code.name, "message": message} for code, message in found]


def _operators(block):
    """The kinds of all nodes in a graph or block, and in the blocks of its nodes."""
    kinds = set()
    for node in block.nodes():
        kinds.add(node.kind())
        kinds.update(*map(_operators, node.blocks()))
    return kinds


def _bundled_names(module):
    """The methods that bundled inputs have added to a module."""
    names = ["get_all_bundled_inputs", "get_num_bundled_inputs", "get_bundled_inputs_functions_and_info"]
    if hasattr(module, names[-1]):
        for function in module.get_bundled_inputs_functions_and_info():
            names += [function, f"get_all_bundled_inputs_for_{function}"]
    return [name for name in names if hasattr(module, name)]
