"""Multi-head attention with its projections and masks."""

import math
import warnings

import rushlight as torch
from rushlight._C import _nn


def _none_or_dtype(input):
    if input is None:
        return None
    if isinstance(input, torch.Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """The mask as numbers to add to the scores: a boolean one becomes -inf where it is True."""
    if mask is None:
        return None
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both "
            "instead.",
            stacklevel=3,
        )
    if mask.is_floating_point():
        return mask
    return torch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _check(condition, message):
    if not condition:
        raise AssertionError(message)


def _check_mha_dims(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether the query has a batch dimension; the others have to agree with it."""
    n = query.dim()
    _check(n in (2, 3), f"query should be unbatched 2D or batched 3D tensor but received {n}-D query tensor")
    who = f"For {'batched' if n == 3 else 'unbatched'} ({n}-D) `query`, expected"
    _check(
        key.dim() == n and value.dim() == n,
        f"{who} `key` and `value` to be {n}-D but found {key.dim()}-D and {value.dim()}-D tensors "
        "respectively",
    )
    if key_padding_mask is not None:
        _check(
            key_padding_mask.dim() == n - 1,
            f"{who} `key_padding_mask` to be `None` or {n - 1}-D but found {key_padding_mask.dim()}-D tensor "
            "instead",
        )
    if attn_mask is not None:
        _check(
            attn_mask.dim() in (2, 3),
            f"{who} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead",
        )
        if n == 2 and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            _check(
                attn_mask.shape == expected,
                f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}",
            )
    return n == 3


def _in_projection_packed(q, k, v, weight, bias):
    """Queries, keys and values from one packed weight; equal inputs share a matrix product."""
    size = q.size(-1)
    if k is v and q is k:
        return _nn.linear(q, weight, bias).chunk(3, dim=-1)
    if k is v:
        w_q, w_kv = weight.split([size, size * 2])
        b_q, b_kv = (None, None) if bias is None else bias.split([size, size * 2])
        return (_nn.linear(q, w_q, b_q), *_nn.linear(k, w_kv, b_kv).chunk(2, dim=-1))
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return [_nn.linear(x, w, b) for x, w, b in zip((q, k, v), weight.chunk(3), biases)]


def _pad_masks(amount, *masks):
    return [None if mask is None else _nn.pad(mask, (0, amount)) for mask in masks]


def _split_heads(x, num_heads, head_dim):
    """(length, batch, heads * head_dim) as (batch * heads, length, head_dim)."""
    length, batch, _ = x.shape
    return x.reshape(length, batch * num_heads, head_dim).transpose(0, 1)


def _static(x, name, batch_heads, head_dim):
    _check(x.size(0) == batch_heads, f"expecting {name}.size(0) of {batch_heads}, but got {x.size(0)}")
    _check(x.size(2) == head_dim, f"expecting {name}.size(2) of {head_dim}, but got {x.size(2)}")
    return x


def _projected(query, key, value, weights, bias):
    """Queries, keys and values from a weight each; `weights` are named, for what is said of a missing one."""
    _check(
        key.shape[:2] == value.shape[:2],
        f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
    )
    for name, weight in weights.items():
        _check(weight is not None, f"use_separate_proj_weight is True but {name} is None")
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return [_nn.linear(x, w, b) for x, w, b in zip((query, key, value), weights.values(), biases)]


def _attn_mask_of_heads(mask, heads, tgt_len, src_len):
    """The mask as (1 or heads, tgt_len, src_len)."""
    wanted = (tgt_len, src_len) if mask.dim() == 2 else (heads, tgt_len, src_len)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {wanted}."
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _with_padding(attn_mask, key_padding_mask, num_heads, batch, src_len):
    """Both masks as one: what no query may see beside what each may see."""
    _check(
        tuple(key_padding_mask.shape) == (batch, src_len),
        f"expecting key_padding_mask shape of {(batch, src_len)}, but got {key_padding_mask.shape}",
    )
    padding = key_padding_mask.view(batch, 1, 1, src_len).expand(-1, num_heads, -1, -1)
    padding = padding.reshape(batch * num_heads, 1, src_len)
    return padding if attn_mask is None else attn_mask + padding


def _attend_with_weights(q, k, v, attn_mask, dropout, batch, num_heads, average):
    """(tgt_len * batch, embed_dim) and the attention weights, averaged over heads or of each."""
    _, tgt_len, head_dim = q.shape
    scores = (q * math.sqrt(1.0 / head_dim)) @ k.transpose(-2, -1)
    weights = _nn.softmax(scores if attn_mask is None else scores + attn_mask, dim=-1)
    if dropout > 0.0:
        weights = torch.nn.functional.dropout(weights, p=dropout)
    out = torch.bmm(weights, v).transpose(0, 1).reshape(tgt_len * batch, num_heads * head_dim)
    weights = weights.view(batch, num_heads, tgt_len, k.size(1))
    return out, weights.mean(dim=1) if average else weights


def _attend(q, k, v, attn_mask, dropout, is_causal, batch, num_heads):
    """(tgt_len * batch, embed_dim) by scaled_dot_product_attention, which may be what a program put there."""
    _, tgt_len, head_dim = q.shape
    q, k, v = (x.view(batch, num_heads, x.size(1), head_dim) for x in (q, k, v))
    if attn_mask is not None:
        shared = attn_mask.size(0) == 1
        lead = (1, 1) if shared else (batch, num_heads)
        attn_mask = attn_mask.view(*lead, attn_mask.size(-2), k.size(2))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask, dropout, is_causal)
    return out.permute(2, 0, 1, 3).reshape(tgt_len * batch, num_heads * head_dim)


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Attention of query over key and value with several heads; length comes before batch.

    1. project, 2. extend keys and values, 3. split into heads, 4. merge the masks, 5. attend, 6. project.
    """
    batched = _check_mha_dims(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, bsz, embed_dim = query.shape
    src_len = key.shape[0]
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        if key_padding_mask is not None:
            is_causal = False
    _check(
        embed_dim == embed_dim_to_check,
        f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}",
    )
    head_dim = embed_dim // num_heads
    _check(head_dim * num_heads == embed_dim, f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")

    # 1.
    if use_separate_proj_weight:
        weights = {
            "q_proj_weight": q_proj_weight,
            "k_proj_weight": k_proj_weight,
            "v_proj_weight": v_proj_weight,
        }
        q, k, v = _projected(query, key, value, weights, in_proj_bias)
    else:
        _check(key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}")
        _check(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    heads = bsz * num_heads
    if attn_mask is not None:
        attn_mask = _attn_mask_of_heads(attn_mask, heads, tgt_len, src_len)

    # 2. and 3.
    if bias_k is not None and bias_v is not None:
        _check(static_k is None, "bias cannot be added to static key.")
        _check(static_v is None, "bias cannot be added to static value.")
        k = torch.cat([k, bias_k.repeat(1, bsz, 1)])
        v = torch.cat([v, bias_v.repeat(1, bsz, 1)])
        attn_mask, key_padding_mask = _pad_masks(1, attn_mask, key_padding_mask)
    else:
        _check(bias_k is None and bias_v is None, "bias_k and bias_v must both be given, or neither")
    q = _split_heads(q, num_heads, head_dim)
    k, v = (
        _split_heads(x, num_heads, head_dim) if static is None else _static(static, name, heads, head_dim)
        for x, static, name in ((k, static_k, "static_k"), (v, static_v, "static_v"))
    )
    if add_zero_attn:
        zeros = torch.zeros((heads, 1, head_dim), dtype=k.dtype, device=k.device)
        k, v = torch.cat([k, zeros], dim=1), torch.cat([v, zeros], dim=1)
        attn_mask, key_padding_mask = _pad_masks(1, attn_mask, key_padding_mask)

    # 4.
    if key_padding_mask is not None:
        attn_mask = _with_padding(attn_mask, key_padding_mask, num_heads, bsz, k.size(1))

    # 5. and 6.
    dropout = dropout_p if training else 0.0
    if need_weights:
        _check(
            not (is_causal and attn_mask is None),
            "is_causal with need_weights=True needs attn_mask: pass the causal mask, or need_weights=False",
        )
        out, weights = _attend_with_weights(q, k, v, attn_mask, dropout, bsz, num_heads, average_attn_weights)
    else:
        out, weights = _attend(q, k, v, attn_mask, dropout, is_causal, bsz, num_heads), None
    out = _nn.linear(out, out_proj_weight, out_proj_bias)
    out = out.view(tgt_len, bsz, out.size(1))
    if batched:
        return out, weights
    return out.squeeze(1), None if weights is None else weights.squeeze(0)
