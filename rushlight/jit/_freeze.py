"""Scripts for inference alone: parameters and buffers become constants of their modules."""

from __future__ import annotations

import ast
import copy

from rushlight.jit._check_values import declared_type
from rushlight.jit._script import ScriptModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.nn import Module


def freeze(
    mod: Module, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
) -> ScriptModule:
    """A copy of a script in evaluation mode whose weights are constants: it has no parameters or state_dict,
    and cannot return to training.

    Args:
        preserved_attrs: names of attributes of `mod` that stay what they are.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to "
            "script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your "
            "module before freezing."
        )
    for module in mod.modules():
        _check_stores(module)
    frozen = copy.deepcopy(mod)
    for module in frozen.modules():
        kept = frozenset(preserved_attrs or ()) if module is frozen else frozenset()
        for table in (module._parameters, module._buffers):
            for name in [n for n in table if n not in kept]:
                tensor = table.pop(name)
                module.__dict__[name] = None if tensor is None else tensor.detach()
        module._non_persistent_buffers_set.clear()
    return frozen


def _check_stores(module):
    """What an interface stands for may not change in a run."""
    units = getattr(type(module), "_script_methods", {})
    for node in (node for unit in units.values() for node in ast.walk(unit.tree)):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
            continue
        said = declared_type(module, node.attr)
        if said is not None and said.kind == "Interface":
            raise RuntimeError("Freezing does not support SetAttr on an interface type.")


def run_frozen_optimizations(
    mod: Module, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Nothing to do: library operators run as they are."""


def optimize_for_inference(mod: Module, other_methods: list[str] | None = None) -> ScriptModule:
    """The script, frozen."""
    if not isinstance(mod, ScriptModule):
        raise ValueError(
            "optimize_for_inference expects ScriptModule as input. Please use torch.jit.script first."
        )
    trained = any(True for _ in mod.parameters()) or any(True for _ in mod.buffers())
    return freeze(mod.eval(), preserved_attrs=other_methods) if trained else mod
