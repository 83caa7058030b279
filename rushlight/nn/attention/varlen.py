"""Attention over sequences of different lengths that are packed one after the other, without padding."""

from __future__ import annotations

from typing import NamedTuple

import rushlight as torch

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What `varlen_attn` returns beside its result: `lse`, the log-sum-exp of the scores."""

    lse: bool = False


def varlen_attn(
    query,
    key,
    value,
    cu_seq_q,
    cu_seq_k,
    max_q,
    max_k,
    *,
    return_aux=None,
    scale=None,
    window_size=(-1, -1),
    enable_gqa=False,
    seqused_k=None,
    block_table=None,
    num_splits=None,
):
    """softmax(query @ key.T * scale) @ value of each sequence of a packed batch. The lengths are read by the
    host. Differentiable, unless `seqused_k` or `block_table` are given.

    Args:
        query: ``[queries of all sequences, heads, width]``.
        key, value: ``[keys of all sequences, heads, width]``; with `block_table` ``[pages, page size, heads,
            width]``.
        cu_seq_q, cu_seq_k: integers ``[sequences + 1]``: where each sequence begins, and the end of the last;
            `cu_seq_k` is None with `block_table`.
        max_q, max_k: the largest lengths, which need not be exact.
        return_aux: ``AuxRequest(lse=True)`` asks for ``[queries, heads]`` log-sum-exps too.
        scale: of the scores; ``width ** -0.5`` by default.
        window_size: how many keys before and behind its own place a query sees, -1 for all: (-1, 0) is
            causal. The last query's place is that of the last key. A query that sees nothing gets zeros.
        enable_gqa: whether keys may have fewer heads than queries, each for a group of these.
        seqused_k: integers ``[sequences]``: only so many keys of each sequence count.
        block_table: integers ``[sequences, pages]``: the pages of each sequence, in order.
        num_splits: taken for PyTorch's sake: a sequence's result never depends on the others.

    Returns:
        ``[queries, heads, width]``, or a pair of it and the log-sum-exps.

    Raises ValueError for shapes that do not fit, RuntimeError for gradients that there are not.

    >>> lengths = torch.tensor([0, 3, 5])
    >>> x = torch.randn(5, 2, 8)
    >>> varlen_attn(x, x, x, lengths, lengths, 3, 3, window_size=(-1, 0)).shape
    torch.Size([5, 2, 8])
    """
    _check(query, key, value, window_size, enable_gqa, seqused_k, block_table)
    ends, results, sums = _ends("cu_seq_q", cu_seq_q, query.shape[0]), [], []
    packed = _packed_keys if block_table is None else _paged_keys
    where = cu_seq_k if block_table is None else block_table
    others = list(packed(key, value, where, seqused_k))
    if len(others) != len(ends) - 1:
        raise ValueError(f"varlen_attn: {len(ends) - 1} sequences of queries, but {len(others)} of keys")
    for begin, end, (keys, values) in zip(ends, ends[1:], others):
        out, lse = _attend(query[begin:end], keys, values, window_size, scale)
        results.append(out)
        sums.append(lse)
    out = torch.cat(results) if results else query.new_empty((0, query.shape[1], value.shape[-1]))
    if not (return_aux and return_aux.lse):
        return out
    return out, torch.cat(sums).detach() if sums else query.new_empty((0, query.shape[1]))


def varlen_attn_out(out, query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **options):
    """`varlen_attn`, written to `out`. No gradients are recorded."""
    with torch.no_grad():
        result = varlen_attn(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **options)
        if isinstance(result, tuple):
            return out.copy_(result[0]), result[1]
        return out.copy_(result)


def _check(query, key, value, window_size, enable_gqa, seqused_k, block_table):
    rank = 3 if block_table is None else 4
    if query.dim() != 3 or key.dim() != rank or value.shape[:-1] != key.shape[:-1]:
        raise ValueError(
            f"varlen_attn: expected a query of 3 dimensions, keys and values of {rank}, but got "
            f"{list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
        )
    if len(window_size) != 2:
        raise ValueError(f"window_size must have length 2, got {len(window_size)}")
    heads, shared = query.shape[1], key.shape[-2]
    if not enable_gqa and heads != shared:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={shared}. Try setting enable_gqa=True for GQA."
        )
    if heads % shared:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={shared}."
        )
    recorded = torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value))
    for name, given in (("seqused_k", seqused_k), ("block_table", block_table)):
        if given is not None and recorded:
            raise RuntimeError(f"{name} is an inference-only parameter.")
    if block_table is not None and seqused_k is None:
        raise ValueError("varlen_attn: block_table needs seqused_k")


def _ends(name, cumulative, total):
    """Where sequences begin, and the last one ends."""
    ends = cumulative.tolist()
    if not ends or ends[0] != 0 or ends[-1] > total or any(a > b for a, b in zip(ends, ends[1:])):
        raise ValueError(f"varlen_attn: {name} must rise from 0 to at most {total}, but got {ends}")
    return ends


def _packed_keys(key, value, cu_seq_k, seqused_k):
    """Keys and values of each sequence."""
    ends = _ends("cu_seq_k", cu_seq_k, key.shape[0])
    counts = [b - a for a, b in zip(ends, ends[1:])]
    used = counts if seqused_k is None else [min(two) for two in zip(seqused_k.tolist(), counts)]
    for begin, count in zip(ends, used):
        yield key[begin : begin + count], value[begin : begin + count]


def _paged_keys(key, value, block_table, seqused_k):
    """The same, collected from pages."""
    size = key.shape[1]
    for pages, count in zip(block_table, seqused_k.tolist()):
        if count > len(pages) * size:
            raise ValueError(f"varlen_attn: {count} keys do not fit {len(pages)} pages of {size}")
        taken = pages[: -(-count // size)].long()
        yield key[taken].flatten(0, 1)[:count], value[taken].flatten(0, 1)[:count]


def _attend(query, key, value, window_size, scale):
    """One sequence: ``[length, heads, width]`` each, and the log-sum-exps ``[length, heads]``."""
    queries, keys = query.shape[0], key.shape[0]
    if not queries or not keys:  # nothing is seen
        wide = torch.promote_types(query.dtype, torch.float32)
        lse = query.new_full(query.shape[:2], float("-inf"), dtype=wide)
        return query.new_zeros((*query.shape[:2], value.shape[-1])), lse
    causal = tuple(window_size) == (-1, 0) and queries == keys
    mask = None if causal else _window(queries, keys, window_size, query.device)
    operands = (part.transpose(0, 1).unsqueeze(0) for part in (query, key, value))
    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    if mask is not None:
        mask = query.new_zeros(mask.shape).masked_fill(~mask, float("-inf"))
    out, lse = attend(*operands, 0.0, causal, attn_mask=mask, scale=scale)
    return out.squeeze(0).transpose(0, 1), lse.squeeze(0).transpose(0, 1)


def _window(queries, keys, window_size, device):
    """Which keys each query sees; None: all of them."""
    before, behind = window_size
    if before < 0 and behind < 0:
        return None
    place = torch.arange(queries, device=device).unsqueeze(1) + (keys - queries)
    distance = torch.arange(keys, device=device) - place
    seen = torch.ones((queries, keys), dtype=torch.bool, device=device)
    if before >= 0:
        seen &= distance >= -before
    if behind >= 0:
        seen &= distance <= behind
    return seen
