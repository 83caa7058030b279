"""Activation checkpointing of a module in place: its class, its structure and its names stay."""

import types

from rushlight.distributed._composable.contract import contract

__all__ = ["checkpoint"]


@contract()
def checkpoint(module, **kwargs):
    """Let a module's forward keep no intermediate results, and compute them again in the backward pass.

    Args:
        module: changed in place, and given back.
        kwargs: what `torch.utils.checkpoint.checkpoint` takes, without `use_reentrant=True`.
    """
    if kwargs.pop("use_reentrant", False):
        raise NotImplementedError(
            "use_reentrant=True is not supported in composable checkpoint. Please use "
            "torch.utils.checkpoint.checkpoint instead."
        )
    unknown = kwargs.keys() - {"preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"}
    if unknown:
        raise ValueError("Unexpected keyword arguments: " + ",".join(sorted(unknown)))
    module._checkpoint_options = kwargs
    # A method, so that a copy of the module calls its own forward.
    module.forward = types.MethodType(_checkpointed_forward, module)
    return module


def _checkpointed_forward(self, *args, **kwargs):
    from functools import partial

    from rushlight.utils.checkpoint import checkpoint as call_checkpointed

    forward = partial(type(self).forward, self, **kwargs)
    return call_checkpointed(forward, *args, use_reentrant=False, **self._checkpoint_options)
