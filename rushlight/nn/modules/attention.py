"""Multi-head attention as a module."""

import rushlight as torch
from rushlight import Tensor
from rushlight._command.names import show_from
from rushlight._errors.advice import advised
from rushlight.nn import functional as F
from rushlight.nn.init import constant_, xavier_normal_, xavier_uniform_
from rushlight.nn.parameter import Parameter

from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of a query over keys and values with several heads (Vaswani and others 2017), between learned
    projections.

    Args:
        embed_dim (int): features of query and result.
        num_heads (int): heads, of which `embed_dim` is a multiple.
        dropout (float): probability of dropout of weights.
        bias (bool): whether projections have biases.
        add_bias_kv (bool): whether a learned key and value are added.
        add_zero_attn (bool): whether a key and value of zeros are added.
        kdim (int or None): features of keys; None: `embed_dim`.
        vdim (int or None): features of values; None: `embed_dim`.
        batch_first (bool): whether the batch is the first dimension.
        device, dtype: where and in which dtype the parameters are made.

    Shape: query (length, batch, embed_dim), key and value (source, batch, features) become (length, batch,
        embed_dim) and weights (batch, length, source), or None without `need_weights`.

    Formula: softmax(q @ k.T / sqrt(embed_dim / num_heads) + mask) @ v of each head, side by side, projected

    Raises: AssertionError where `embed_dim` is no multiple of `num_heads`; RuntimeError where masks do not
        fit.

    Example:
        >>> layer = torch.nn.MultiheadAttention(4, 2, batch_first=True)
        >>> x = torch.ones(1, 3, 4)
        >>> output, weights = layer(x, x, x)
        >>> output.shape, weights.shape
        (torch.Size([1, 3, 4]), torch.Size([1, 3, 3]))
    """

    __constants__ = ["batch_first"]

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, "
                f"got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise advised(AssertionError("embed_dim must be divisible by num_heads"))

        def parameter(*shape):
            return Parameter(torch.empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = parameter(embed_dim, embed_dim)
            self.k_proj_weight = parameter(embed_dim, self.kdim)
            self.v_proj_weight = parameter(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        self.bias_k = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                xavier_normal_(bias)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attended values, and the attention weights if need_weights (averaged over heads, or all)."""
        if query.is_nested and query.layout == torch.strided:
            self._check_nested(query, key, value, key_padding_mask, attn_mask)
            return torch._native_multi_head_attention(
                query,
                key,
                value,
                self.embed_dim,
                self.num_heads,
                self.in_proj_weight,
                self.in_proj_bias,
                self.out_proj.weight,
                self.out_proj.bias,
                need_weights=need_weights,
                average_attn_weights=average_attn_weights,
            )
        key_padding_mask = F._canonical_mask(
            mask=key_padding_mask,
            mask_name="key_padding_mask",
            other_type=F._none_or_dtype(attn_mask),
            other_name="attn_mask",
            target_type=query.dtype,
        )
        attn_mask = F._canonical_mask(
            mask=attn_mask,
            mask_name="attn_mask",
            other_type=None,
            other_name="",
            target_type=query.dtype,
            check_other=False,
        )
        transposed = self.batch_first and query.dim() == 3
        if transposed:
            query, key, value = _transposed(query, key, value)
        separate = {}
        if not self._qkv_same_embed_dim:
            separate = {
                "use_separate_proj_weight": True,
                "q_proj_weight": self.q_proj_weight,
                "k_proj_weight": self.k_proj_weight,
                "v_proj_weight": self.v_proj_weight,
            }
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **separate,
        )
        return (out.transpose(1, 0) if transposed else out), weights

    def _check_nested(self, query, key, value, key_padding_mask, attn_mask):
        """What attention over nested tensors of layout torch.strided can do."""
        reasons = {
            "key and value are no nested tensors": not (key.is_nested and value.is_nested),
            "batch_first was not True": not self.batch_first,
            "masks were given": key_padding_mask is not None or attn_mask is not None,
            "query, key and value have different widths": not self._qkv_same_embed_dim,
            "it has no bias": self.in_proj_bias is None,
            "add_bias_kv is set": self.bias_k is not None,
            "add_zero_attn is set": self.add_zero_attn,
            "dropout is active": self.training and self.dropout > 0,
        }
        found = [reason for reason, holds in reasons.items() if holds]
        if found:
            raise AssertionError(
                "MultiheadAttention does not support NestedTensor outside of its fast path. The fast path "
                f"was not hit because {', '.join(found)}"
            )

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """Both masks as one of (batch, heads, length, length), and a number that tells its kind."""
        kind, merged = None, None
        if key_padding_mask is not None:
            kind, merged = 1, key_padding_mask
        if attn_mask is not None:
            batch, length, _ = query.shape
            kind = 2
            if attn_mask.dim() == 3:
                merged = attn_mask.view(batch, -1, length, length)
            else:
                merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
            if key_padding_mask is not None:
                merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(
                    -1, self.num_heads, -1, -1
                )
        return merged, kind


def _transposed(query, key, value):
    """Batch and length exchanged; arguments that are one tensor stay one, so they can share a projection."""
    q = query.transpose(1, 0)
    k = q if key is query else key.transpose(1, 0)
    v = k if value is key else q if value is query else value.transpose(1, 0)
    return q, k, v


show_from("nn.modules.activation", MultiheadAttention)
