"""Attention and the layers of transformers as scripts over operators."""

# Types are those of scripts, where a dtype is a number.
# mypy: ignore-errors

from typing import Optional, Tuple

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

# ruff: noqa: UP006, UP007, UP035, UP045, A002, N802


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Optional[Tensor],
    in_proj_bias: Optional[Tensor],
    bias_k: Optional[Tensor],
    bias_v: Optional[Tensor],
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Optional[Tensor],
    training: bool = True,
    key_padding_mask: Optional[Tensor] = None,
    need_weights: bool = True,
    attn_mask: Optional[Tensor] = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Optional[Tensor] = None,
    k_proj_weight: Optional[Tensor] = None,
    v_proj_weight: Optional[Tensor] = None,
    static_k: Optional[Tensor] = None,
    static_v: Optional[Tensor] = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    batched, absent, heads = query.dim() == 3, key_padding_mask, num_heads
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if absent is not None:
            absent = absent.unsqueeze(0)
    length, batch, width = query.size(0), query.size(1), query.size(2)
    size = width // heads
    mask = as_bias(attn_mask, query)
    absent = as_bias(absent, query)
    weights = projections(in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, width)
    biases = parts_of_bias(in_proj_bias, width)
    q = torch.ops.aten.linear(query, weights[0], biases[0])
    k = torch.ops.aten.linear(key, weights[1], biases[1])
    v = torch.ops.aten.linear(value, weights[2], biases[2])
    if bias_k is not None and bias_v is not None:
        k = torch.cat([k, bias_k.repeat([1, batch, 1])])
        v = torch.cat([v, bias_v.repeat([1, batch, 1])])
        mask, absent = widened(mask), widened(absent)
    q = q.reshape([length, batch * heads, size]).transpose(0, 1)
    k = k.reshape([k.size(0), batch * heads, size]).transpose(0, 1)
    v = v.reshape([v.size(0), batch * heads, size]).transpose(0, 1)
    if add_zero_attn:
        nothing = torch.zeros([batch * heads, 1, size], dtype=k.dtype, device=k.device)
        k, v = torch.cat([k, nothing], 1), torch.cat([v, nothing], 1)
        mask, absent = widened(mask), widened(absent)
    mask = merged(mask, absent, batch, heads)
    scores = torch.bmm(q * (1.0 / float(size) ** 0.5), k.transpose(1, 2))
    if mask is not None:
        scores = scores + mask
    attended = torch.ops.aten.dropout(torch.ops.aten.softmax(scores, -1), dropout_p, training)
    out = torch.bmm(attended, v).transpose(0, 1).reshape([length, batch, width])
    out = torch.ops.aten.linear(out, out_proj_weight, out_proj_bias)
    if not batched:
        out = out.squeeze(1)
    if not need_weights:
        return out, None
    shown = attended.view([batch, heads, length, k.size(1)])
    if average_attn_weights:
        shown = shown.mean([1])
    return out, shown if batched else shown.squeeze(0)


def projections(
    whole: Optional[Tensor], q: Optional[Tensor], k: Optional[Tensor], v: Optional[Tensor], width: int
) -> Tuple[Tensor, Tensor, Tensor]:
    if whole is not None:
        return whole[:width], whole[width : 2 * width], whole[2 * width :]
    assert q is not None and k is not None and v is not None
    return q, k, v


def parts_of_bias(
    bias: Optional[Tensor], width: int
) -> Tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]]:
    if bias is not None:
        return bias[:width], bias[width : 2 * width], bias[2 * width :]
    return None, None, None


def as_bias(mask: Optional[Tensor], like: Tensor) -> Optional[Tensor]:
    """What is added to scores."""
    if mask is not None:
        if mask.dtype == torch.bool:
            zeros = torch.zeros(mask.size(), dtype=like.dtype, device=mask.device)
            return zeros.masked_fill(mask, float("-inf"))
    return mask


def widened(mask: Optional[Tensor]) -> Optional[Tensor]:
    """A mask for one more key, which all may see."""
    if mask is not None:
        return torch.ops.aten.pad(mask, [0, 1])
    return mask


def merged(mask: Optional[Tensor], absent: Optional[Tensor], batch: int, heads: int) -> Optional[Tensor]:
    if mask is not None:
        if mask.dim() == 2:
            mask = mask.unsqueeze(0)
    if absent is not None:
        keys = absent.size(1)
        wide = absent.view([batch, 1, 1, keys]).expand([-1, heads, -1, -1]).reshape([batch * heads, 1, keys])
        if mask is None:
            return wide
        return mask + wide
    return mask


def generate_square_subsequent_mask(
    sz: int, device: Optional[torch.device] = None, dtype: Optional[int] = None
) -> Tensor:
    return torch.triu(torch.full([sz, sz], float("-inf"), dtype=dtype, device=device), 1)


def MultiheadAttention_forward(
    self,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Optional[Tensor] = None,
    need_weights: bool = True,
    attn_mask: Optional[Tensor] = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    turned = self.batch_first and query.dim() == 3
    if turned:
        query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
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
        self.training,
        key_padding_mask,
        need_weights,
        attn_mask,
        not self._qkv_same_embed_dim,
        self.q_proj_weight,
        self.k_proj_weight,
        self.v_proj_weight,
        None,
        None,
        average_attn_weights,
        is_causal,
    )
    return out.transpose(0, 1) if turned else out, weights


def TransformerEncoderLayer__sa_block(
    self, x: Tensor, attn_mask: Optional[Tensor], key_padding_mask: Optional[Tensor], is_causal: bool = False
) -> Tensor:
    out, _ = self.self_attn(x, x, x, key_padding_mask, False, attn_mask)
    return self.dropout1(out)


def TransformerEncoderLayer__ff_block(self, x: Tensor) -> Tensor:
    return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def TransformerDecoderLayer__sa_block(
    self, x: Tensor, attn_mask: Optional[Tensor], key_padding_mask: Optional[Tensor], is_causal: bool = False
) -> Tensor:
    out, _ = self.self_attn(x, x, x, key_padding_mask, False, attn_mask)
    return self.dropout1(out)


def TransformerDecoderLayer__mha_block(
    self,
    x: Tensor,
    mem: Tensor,
    attn_mask: Optional[Tensor],
    key_padding_mask: Optional[Tensor],
    is_causal: bool = False,
) -> Tensor:
    out, _ = self.multihead_attn(x, mem, mem, key_padding_mask, False, attn_mask)
    return self.dropout2(out)


def TransformerDecoderLayer__ff_block(self, x: Tensor) -> Tensor:
    return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def TransformerEncoder_forward(
    self,
    src: Tensor,
    mask: Optional[Tensor] = None,
    src_key_padding_mask: Optional[Tensor] = None,
    is_causal: Optional[bool] = None,
) -> Tensor:
    out = src
    for layer in self.layers:
        out = layer(out, mask, src_key_padding_mask)
    if self.norm is not None:
        out = self.norm(out)
    return out


def TransformerDecoder_forward(
    self,
    tgt: Tensor,
    memory: Tensor,
    tgt_mask: Optional[Tensor] = None,
    memory_mask: Optional[Tensor] = None,
    tgt_key_padding_mask: Optional[Tensor] = None,
    memory_key_padding_mask: Optional[Tensor] = None,
    tgt_is_causal: Optional[bool] = None,
    memory_is_causal: bool = False,
) -> Tensor:
    out = tgt
    for layer in self.layers:
        out = layer(out, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
    if self.norm is not None:
        out = self.norm(out)
    return out
