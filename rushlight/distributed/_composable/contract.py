"""What functions that change modules in place keep to: names stay, each is applied to a module once."""

import functools
from typing import NamedTuple

from rushlight.nn import Module

__all__ = ["RegistryItem", "contract"]

_STATES, _REGISTRY = "_composable_states", "_composable_registry"


class RegistryItem(NamedTuple):
    """What is kept of one function that was applied."""

    function: object


class _State:
    """Attributes that a function keeps for a module."""


def _get_registry(module):
    """Name -> RegistryItem of the functions applied to a module; None if there were none."""
    return module.__dict__.get(_REGISTRY)


def contract(state_cls=_State):
    """Decorate a function that changes a module, or a list of modules, in place and returns it.

    The decorated function refuses a module that it has changed before, and checks that names of parameters,
    buffers and modules are as they were. ``function.state(module)`` is what it keeps for a module."""

    def decorate(function):
        name = function.__name__

        @functools.wraps(function)
        def wrapper(module, *args, **kwargs):
            modules = [module] if isinstance(module, Module) else list(module)
            _register(modules, function, name, state_cls)
            before = [_names(m) for m in modules]
            changed = function(module, *args, **kwargs)
            after = (
                modules if changed is None else [changed] if isinstance(changed, Module) else list(changed)
            )
            if len(after) != len(modules):
                raise RuntimeError(
                    "Output modules should have the same length as the input modules, but got "
                    f"{len(after)} instead of {len(modules)}"
                )
            for old, new in zip(before, after, strict=True):
                _check_names(old, _names(new))
            return changed

        def state(module):
            return module.__dict__.get(_STATES, {}).get(function)

        vars(wrapper)["state"] = state
        return wrapper

    return decorate


def _register(modules, function, name, state_cls):
    for module in modules:
        applied = _get_registry(module) or {}
        if name in applied:
            raise AssertionError(
                "Each distinct composable distributed API can only be applied to a module once. "
                f"{name} has already been applied to the following module:\n{module}"
            )
    # Modules of one call share the state, and what is registered, unless some of it is theirs already.
    state, shared = state_cls(), {}
    for module in modules:
        module.__dict__.setdefault(_STATES, {})[function] = state
        if _get_registry(module) is None:
            module.__dict__[_REGISTRY] = shared
        _get_registry(module)[name] = RegistryItem(function)


def _names(module):
    return {
        "parameters": [name for name, _ in module.named_parameters()],
        "buffers": [name for name, _ in module.named_buffers()],
        "modules": [name for name, _ in module.named_modules()],
    }


def _check_names(before, after):
    for kind, old in before.items():
        new = after[kind]
        if old != new:
            raise RuntimeError(
                f"Checking {kind}: Composable distributed API implementations cannot modify FQNs. "
                f"Only before: {sorted(set(old) - set(new))}, only after: {sorted(set(new) - set(old))}."
            )
