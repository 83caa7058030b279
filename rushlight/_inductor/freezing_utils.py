"""Marks on tensors that a pass has made constant, so that later passes know them."""

__all__ = ["is_frozen_param", "maybe_set_is_frozen_param"]


def maybe_set_is_frozen_param(t):
    """Mark a tensor as constant from here on."""
    t._is_frozen_param = True


def is_frozen_param(t):
    """Whether a pass marked the tensor."""
    return getattr(t, "_is_frozen_param", False)
