"""Operators of PyTorch that are no records here, written with those that are, for archives that call them."""

import rushlight
from rushlight.nn import functional


def _split_heads(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _additive(mask, kind, like):
    """A mask as scores add it. `kind` 0: by position, 1: by key of each sequence, 2: both; True hides."""
    if mask is None:
        return None
    if kind == 1:
        mask = mask[:, None, None, :]
    if mask.dtype == rushlight.bool:
        mask = rushlight.zeros_like(mask, dtype=like.dtype).masked_fill(mask, float("-inf"))
    return mask


def _attend(q, k, v, heads, mask, kind):
    q, k, v = (_split_heads(x, heads) for x in (q, k, v))
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    added = _additive(mask, kind, scores)
    weights = (scores if added is None else scores + added).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2), weights


def native_attention(
    query, key, value, embed_dim, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask=None,
    need_weights=True, average=True, kind=None,
):  # fmt: skip
    parts = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    out, weights = _attend(*(functional.linear(x, w, b) for x, w, b in parts), heads, mask, kind)
    out = functional.linear(out, proj_weight, proj_bias)
    if not need_weights:
        return out, rushlight.empty(0)
    return out, weights.mean(1) if average else weights


def encoder_layer(
    x, embed_dim, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, weight_1,
    bias_1, weight_2, bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask=None, kind=None,
):  # fmt: skip
    def attention(y):
        return native_attention(
            y, y, y, embed_dim, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, kind
        )[0]

    def feed_forward(y):
        y = functional.linear(y, ffn_weight_1, ffn_bias_1)
        return functional.linear(functional.gelu(y) if use_gelu else y.relu(), ffn_weight_2, ffn_bias_2)

    def norm(y, weight, bias):
        return functional.layer_norm(y, (embed_dim,), weight, bias, eps)

    if norm_first:
        x = x + attention(norm(x, weight_1, bias_1))
        return x + feed_forward(norm(x, weight_2, bias_2))
    x = norm(x + attention(x), weight_1, bias_1)
    return norm(x + feed_forward(x), weight_2, bias_2)
