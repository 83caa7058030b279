"""Which modules within a model are wrapped by themselves."""

from __future__ import annotations

import contextlib
import functools
from abc import ABC, abstractmethod

from rushlight import nn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from rushlight.nn import Module

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]


def always_wrap_policy(*args: Any, **kwargs: Any):
    """Every module."""
    return True


def _module_wrap_policy(module, recurse, nonwrapped_numel, module_classes):
    return True if recurse else isinstance(module, tuple(module_classes))


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[Module]]
):
    """Modules of the given classes."""
    return _module_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls)


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], Any]
):
    """Modules for which a function of the module says so."""
    return True if recurse else lambda_fn(module)


def _or_policy(module, recurse, nonwrapped_numel, policies):
    return any(
        policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies
    )


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules=None,
    exclude_wrap_modules=None,
):
    """Modules that have at least `min_num_params` elements of parameters that are not in a wrapped module."""
    excluded = exclude_wrap_modules or {nn.ModuleList, nn.ModuleDict}
    leaves = force_leaf_modules or {nn.MultiheadAttention}
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(leaves))
    return large and not isinstance(module, tuple(excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {nn.ModuleList, nn.ModuleDict}  # type: ignore[attr-defined]
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {nn.MultiheadAttention}  # type: ignore[attr-defined]


class _Policy(ABC):
    """A policy that chooses for a whole model at once."""

    @abstractmethod
    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        """{module: keyword arguments of its wrapper}."""


class ModuleWrapPolicy(_Policy):
    """Modules of the given classes."""

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        classes = tuple(self._module_classes)
        chosen = [m for m in root_module.modules() if m not in ignored_modules and isinstance(m, classes)]
        return {m: dict(root_kwargs) for m in chosen}

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any):
        return _module_wrap_policy(module, recurse, -1, self._module_classes)

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy(_Policy):
    """Modules for which a function of the module returns True, or a dict of arguments for their wrapper."""

    def __init__(self, lambda_fn: Callable[[Module], Any]) -> None:
        self._lambda_fn = lambda_fn

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        chosen = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            said = self._lambda_fn(module)
            if not isinstance(said, (dict, bool)):
                raise ValueError(
                    "The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it "
                    f"returned {said}"
                )
            if said or isinstance(said, dict):
                chosen[module] = {**root_kwargs, **(said if isinstance(said, dict) else {})}
        return chosen


class _Wrapping:
    options: dict | None = None  # of the innermost enable_wrap


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs):
    """Inside, `wrap(module)` is `wrapper_cls(module, **wrapper_kwargs)`."""
    before, _Wrapping.options = _Wrapping.options, {"wrapper_cls": wrapper_cls, **wrapper_kwargs}
    try:
        yield
    finally:
        _Wrapping.options = before


def wrap(module: Module, **wrap_overrides):
    """The wrapped module within `enable_wrap`, the module itself elsewhere."""
    if _Wrapping.options is None:
        return module
    options = {**_Wrapping.options, **wrap_overrides}
    return options.pop("wrapper_cls")(module, **options)


def wrap_children(root, policy, make, ignored_modules: Iterable[Module] | None, ignored_parameters):
    """Replace the modules that a policy chooses, inner ones first, by `make(module, **arguments)`."""
    if isinstance(policy, _Policy):
        chosen = policy._run_policy(root, ignored_modules, {})
        chosen.pop(root, None)
        _replace(root, chosen, make)
        return
    if not callable(policy):
        raise TypeError(f"auto_wrap_policy: expected a policy or a function, but got {policy!r}")
    _recursive(root, functools.partial(_asked, policy), make, ignored_modules, ignored_parameters, True)


def _asked(policy, module, recurse, count):
    return policy(module=module, recurse=recurse, nonwrapped_numel=count)


def _replace(root, chosen, make):
    made: dict = {}
    for name, child in list(root.named_children()):
        _replace(child, chosen, make)
        if child in chosen:
            if id(child) not in made:
                made[id(child)] = make(child, **chosen[child])
            setattr(root, name, made[id(child)])


def _recursive(module, asks, make, ignored_modules, ignored, is_root=False):
    """Returns (the module or its wrapper, how many elements it has wrapped)."""
    count = sum(p.numel() for p in module.parameters() if p not in ignored)
    if not asks(module, True, count):
        return module, 0
    wrapped = 0
    for name, child in list(module.named_children()):
        if child in ignored_modules:
            continue
        replaced, within = _recursive(child, asks, make, ignored_modules, ignored)
        setattr(module, name, replaced)
        wrapped += within
    if not is_root and asks(module, False, count - wrapped):
        return make(module), count
    return module, wrapped
