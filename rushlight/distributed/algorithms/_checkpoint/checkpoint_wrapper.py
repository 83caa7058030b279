"""Wrapping modules so that their activations are recomputed in the backward pass, or kept elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import partial

from ....autograd.graph import save_on_cpu
from ....nn import Module
from ....utils.checkpoint import checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PREFIX = "_checkpoint_wrapped_module."


class CheckpointImpl(Enum):
    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A wrapper that looks like the module in it: attributes and state_dict keys are the module's."""

    def __init__(self, mod: Any) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_state_dict_hook)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: str):
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args: Any, **kwargs: Any):
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(module, state_dict, prefix, *args):
        for key in list(state_dict):
            if key.startswith(prefix + _PREFIX):
                state_dict[prefix + key[len(prefix + _PREFIX) :]] = state_dict.pop(key)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(module, state_dict, prefix, *args):
        for key in list(state_dict):
            if key.startswith(prefix) and not key.startswith(prefix + _PREFIX):
                state_dict[prefix + _PREFIX + key[len(prefix) :]] = state_dict.pop(key)


class OffloadWrapper(ActivationWrapper):
    """What the module saves for backward lies in memory of the CPU."""

    def forward(self, *args: Any, **kwargs: Any):
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """What the module would save for backward is computed again instead."""

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: Any = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Any = None,
        **checkpoint_fn_kwargs,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn = partial(checkpoint, use_reentrant=checkpoint_impl == CheckpointImpl.REENTRANT)
        self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any):
        if self.checkpoint_impl != CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)
        # The reentrant form takes positional arguments only.
        names = list(kwargs)

        def call(*values):
            named = dict(zip(names, values[len(args) :]))
            return self._checkpoint_wrapped_module(*values[: len(args)], **named)

        return self.checkpoint_fn(call, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """The module, its saved activations in memory of the CPU."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: Any = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Any = None,
    **checkpoint_fn_kwargs,
) -> Module:
    """The module, recomputing its activations in the backward pass."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable = checkpoint_wrapper,
    check_fn: Callable = lambda _: True,
    auto_wrap_policy: Any = None,
) -> None:
    """Wrap in place the submodules that `check_fn(module)` or `auto_wrap_policy` chooses, inner first."""

    def wrap(module):
        for name, child in module.named_children():
            wrap(child)
            chosen = check_fn(child) if auto_wrap_policy is None else _chosen(auto_wrap_policy, child)
            if chosen:
                setattr(module, name, checkpoint_wrapper_fn(child))

    wrap(model)


def _chosen(policy, module):
    if hasattr(policy, "_module_classes"):
        return isinstance(module, tuple(policy._module_classes))
    return policy(module=module, recurse=False, nonwrapped_numel=sum(p.numel() for p in module.parameters()))
