"""Causal masks that need no memory: attention is told of their kind."""

import warnings
from enum import IntEnum

import rushlight
from rushlight.nn import functional

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Whether the first query sees the first key only, or the last query sees the last key."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(rushlight.Tensor):
    """A causal mask for ``scaled_dot_product_attention``, by `causal_upper_left` or `causal_lower_right`."""

    def __new__(cls, *args, **kwargs):
        return rushlight.Tensor._make_subclass(cls, rushlight.empty(0))

    def __init__(self, variant, seq_len_q, seq_len_kv):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!",
                stacklevel=2,
            )

    def _materialize(self, device=None):
        """The mask as a tensor of booleans."""
        shift = self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0
        ones = rushlight.ones(self.seq_len_q, self.seq_len_kv, device=device, dtype=rushlight.bool)
        return ones.tril(diagonal=shift)

    @staticmethod
    def _dispatch(
        query,
        key,
        value,
        attn_mask,
        dropout_p=0.0,
        is_causal=False,
        scale=None,
        enable_gqa=False,
    ):
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        square = attn_mask.seq_len_q == attn_mask.seq_len_kv
        top_left = square or attn_mask.variant == CausalVariant.UPPER_LEFT
        return functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=None if top_left else attn_mask._materialize(query.device),
            dropout_p=dropout_p,
            is_causal=top_left,
            scale=scale,
            enable_gqa=enable_gqa,
        )

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is functional.scaled_dot_product_attention:
            return cls._dispatch(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self):
        return self._materialize().__repr__()


def causal_upper_left(*size):
    """The mask of shape ``size`` in which query i sees the keys up to i."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size):
    """The mask of shape ``size`` in which the last query sees every key."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
