"""Attention whose scores a function of their position may change or hide."""

from typing import Literal, NamedTuple, TypedDict

import rushlight
from rushlight.nn.attention._block_mask import (
    _DEFAULT_SPARSE_BLOCK_SIZE,  # noqa: F401
    BlockMask,
    _sliced_mask_mod_error,
    and_masks,
    create_block_mask,
    create_mask,
    noop_mask,
    or_masks,
    over_positions,
    positions,
)

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]


class FlexKernelOptions(TypedDict, total=False):
    """Hints for kernels of other devices; taken and not used."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    BACKEND: Literal["AUTO", "TRITON", "FLASH", "TRITON_DECODE"]


class AuxRequest(NamedTuple):
    """What to return besides the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for by `AuxRequest`; None for the rest."""

    lse: object = None
    max_scores: object = None


def _identity(score, batch, head, token_q, token_kv):
    return score


def _check_operands(query, key, value, block_mask, enable_gqa):
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, kv_heads = query.size(-3), key.size(-3)
    if not enable_gqa and heads != kv_heads:
        raise ValueError(
            "Expect query and key/value to have the same number of heads "
            f"but got Hq={heads} and Hkv={kv_heads}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and (kv_heads == 0 or heads % kv_heads):
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA "
            f"but got Hq={heads} and Hkv={kv_heads}."
        )
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension "
            f"but got E={query.size(-1)} and E={key.size(-1)}."
        )
    if key.shape[:3] != value.shape[:3]:
        raise ValueError(f"Expect key and value to agree but in E, but got {key.shape} and {value.shape}.")
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            "Expected query, key, and value to have the same dtype, but got "
            f"query.dtype: {query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if query.size(0) != key.size(0) and block_mask is None:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, "
            f"but got block_mask=None, Bq={query.size(0)}, and Bkv={key.size(0)}."
        )
    if query.size(0) != key.size(0) and (
        key.size(0) != 1 or block_mask.kv_num_blocks.size(0) != query.size(0)
    ):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or block_mask and query to have the "
            f"same batch size, but got Bq={query.size(0)}, Bkv={key.size(0)}, "
            f"B_block_mask={block_mask.kv_num_blocks.size(0)}."
        )


def _check_block_mask(block_mask, query, key):
    if block_mask.mask_mod is _sliced_mask_mod_error:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    q_len, kv_len = block_mask.seq_lengths
    what = (
        f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.size(-2)} and "
        f"kv_len={key.size(-2)}. "
    )
    if query.size(-2) > q_len or key.size(-2) > kv_len:
        raise ValueError(
            what + "As the block mask was created for a smaller length than you're using it for, "
            "you likely need to create a new block mask."
        )
    if query.size(-2) != q_len or key.size(-2) != kv_len:
        raise ValueError(
            what
            + "As the block mask was created for a larger length than you're using it for, you can either "
            "1. create a new block mask with the correct length, or 2. 'adjust' the existing block mask to "
            "the correct length by calling block_mask._adjust(q_len, kv_len)."
        )
    if block_mask.kv_num_blocks.device != query.device:
        raise RuntimeError(
            "Expect q/k/v and block_mask to be on the same device "
            f"but got {query.device} and {block_mask.kv_num_blocks.device}."
        )


def _visible(block_mask, query, key):
    """Where queries may look, or None where they may look anywhere."""
    partial, full = block_mask.visible(query.size(-2), key.size(-2))
    if block_mask.mask_mod is not noop_mask:
        places = positions(*query.shape[:2], query.size(-2), key.size(-2), query.device)
        partial = partial & over_positions(block_mask.mask_mod)(*places)
    return partial if full is None else partial | full


def _changed(score_mod, scores):
    """Every score after `score_mod`, which is told where it stands."""
    places = positions(*scores.shape, scores.device)
    per_score = score_mod
    for dims in ((0, None, None, None, 0), (0, None, None, 0, None), (0, None, 0, None, None)):
        per_score = rushlight.vmap(per_score, in_dims=dims)
    return rushlight.vmap(per_score, in_dims=(0, 0, None, None, None))(scores, *places)


def flex_attention(
    query,
    key,
    value,
    score_mod=None,
    block_mask=None,
    scale=None,
    enable_gqa=False,
    return_lse=False,
    kernel_options=None,
    *,
    return_aux=None,
):
    """softmax(score_mod(query @ key.T * scale)) @ value, over what `block_mask` shows.

    Args:
        query: (batch, heads, queries, E).
        key, value: (batch, heads, keys, E) and (batch, heads, keys, Ev); with ``enable_gqa`` they may have
            fewer heads, each of which serves several of the query's.
        score_mod: a function ``(score, batch, head, q_idx, kv_idx) -> score`` of tensors without dimensions.
        block_mask: from `create_block_mask`.
        scale: one over the root of E if None.
        return_lse: also return the logarithm of the sum of the exponentials of each query's scores.
        return_aux: what to return as an `AuxOutput`.

    A query that sees no key gets zeros. Gradients flow to everything, what `score_mod` refers to included.
    """
    if block_mask is not None and not isinstance(block_mask, BlockMask):
        raise TypeError(
            f"flex_attention: block_mask must be a BlockMask, but got {type(block_mask).__name__}"
        )
    _check_operands(query, key, value, block_mask, enable_gqa)
    if block_mask is not None:
        _check_block_mask(block_mask, query, key)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. "
            "return_lse is deprecated, please use return_aux=AuxRequest(lse=True) instead."
        )
    groups = query.size(1) // key.size(1) if enable_gqa else 1
    if groups > 1:
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    working = rushlight.float64 if query.dtype == rushlight.float64 else rushlight.float32
    scale = query.size(-1) ** -0.5 if scale is None else scale
    scores = (query @ key.transpose(-2, -1)).to(working) * scale
    if score_mod is not None and score_mod is not _identity:
        scores = _changed(score_mod, scores).to(working)
    if block_mask is not None:
        scores = scores.masked_fill(~_visible(block_mask, query, key), -float("inf"))
    weights = rushlight.softmax(scores, dim=-1)
    blind = (scores == -float("inf")).all(dim=-1, keepdim=True)
    weights = weights.masked_fill(blind, 0.0)
    result = weights.to(query.dtype) @ value
    if return_lse:
        return result, scores.logsumexp(dim=-1)
    if return_aux is None:
        return result
    lse = scores.logsumexp(dim=-1) if return_aux.lse else None
    return result, AuxOutput(lse, scores.amax(dim=-1) if return_aux.max_scores else None)
