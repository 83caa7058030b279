"""Attention over packed sequences equals attention over each of them."""

import pytest

import rushlight as torch
from rushlight.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out

LENGTHS = [3, 0, 7, 1]


def _ends(lengths):
    return torch.tensor([0, *lengths]).cumsum(0).int()


def _reference(q, k, v, window, scale=None):
    """One sequence, [length, heads, width]; queries that see nothing get zeros."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum("qhd,khd->hqk", q, k) * (scale or q.shape[-1] ** -0.5)
    distance = torch.arange(len(k)) - (torch.arange(len(q)) + len(k) - len(q)).unsqueeze(1)
    hidden = torch.zeros(distance.shape, dtype=torch.bool)
    if window[0] >= 0:
        hidden |= distance < -window[0]
    if window[1] >= 0:
        hidden |= distance > window[1]
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1).nan_to_num(0)
    return torch.einsum("hqk,khd->qhd", weights, v)


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (2, 0), (1, 2), (0, -1)])
@pytest.mark.parametrize("shared", [4, 2])
def test_results_and_gradients(window, shared):
    torch.manual_seed(0)
    total = sum(LENGTHS)
    shapes = [(total, heads, 8) for heads in (4, shared, shared)]
    q, k, v = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    ends = _ends(LENGTHS)
    found = varlen_attn(q, k, v, ends, ends, 7, 7, window_size=window, enable_gqa=shared < 4)
    parts = [part.split(LENGTHS) for part in (q, k, v)]
    wanted = torch.cat([_reference(*part, window) for part in zip(*parts)])
    torch.testing.assert_close(found, wanted)
    weight = torch.randn_like(found)
    ours, theirs = (torch.autograd.grad(out, (q, k, v), weight) for out in (found, wanted))
    for one, other in zip(ours, theirs):
        torch.testing.assert_close(one, other)


def test_other_numbers_of_keys():
    torch.manual_seed(1)
    q, k, v = torch.randn(5, 2, 8), torch.randn(12, 2, 8), torch.randn(12, 2, 6)
    found = varlen_attn(q, k, v, _ends([2, 3]), _ends([4, 8]), 3, 8, window_size=(-1, 0), scale=0.3)
    parts = zip(q.split([2, 3]), k.split([4, 8]), v.split([4, 8]))
    torch.testing.assert_close(found, torch.cat([_reference(*part, (-1, 0), 0.3) for part in parts]))


def test_log_sum_exp():
    q, k, v = (torch.randn(10, 2, 8) for _ in range(3))
    ends = _ends([4, 6])
    out, lse = varlen_attn(q, k, v, ends, ends, 6, 6, return_aux=AuxRequest(lse=True))
    scores = torch.einsum("qhd,khd->qhk", q[:4], k[:4]) * 8**-0.5
    assert out.shape == (10, 2, 8) and lse.shape == (10, 2)
    torch.testing.assert_close(lse[:4], scores.logsumexp(-1))


def test_used_keys_and_pages():
    torch.manual_seed(2)
    q, used = torch.randn(3, 2, 8), torch.tensor([5, 2], dtype=torch.int32)
    pool_k, pool_v = torch.randn(6, 4, 2, 8), torch.randn(6, 4, 2, 8)
    table = torch.tensor([[4, 1], [0, 3]], dtype=torch.int32)
    ends = _ends([1, 2])
    options = {"seqused_k": used, "window_size": (-1, 0)}
    paged = varlen_attn(q, pool_k, pool_v, ends, None, 2, 8, block_table=table, **options)
    k, v = (pool[table.long()].reshape(16, 2, 8) for pool in (pool_k, pool_v))
    packed = varlen_attn(q, k, v, ends, _ends([8, 8]), 2, 8, **options)
    assert paged.equal(packed)
    wanted = [_reference(q[:1], k[:5], v[:5], (-1, 0)), _reference(q[1:], k[8:10], v[8:10], (-1, 0))]
    torch.testing.assert_close(packed, torch.cat(wanted))
    out = torch.empty_like(q)
    assert varlen_attn_out(out, q, k, v, ends, _ends([8, 8]), 2, 8, **options) is out and out.equal(packed)
    with pytest.raises(RuntimeError, match="seqused_k is an inference-only parameter"):
        varlen_attn(q.clone().requires_grad_(), k, v, ends, _ends([8, 8]), 2, 8, **options)
    with pytest.raises(ValueError, match="9 keys do not fit 2 pages of 4"):
        options["seqused_k"] = torch.tensor([9, 2])
        varlen_attn(q, pool_k, pool_v, ends, None, 2, 8, block_table=table, **options)


def test_what_does_not_fit():
    x, ends = torch.randn(4, 2, 8), _ends([4])
    with pytest.raises(ValueError, match="Try setting enable_gqa=True"):
        varlen_attn(x, x[:, :1], x[:, :1], ends, ends, 4, 4)
    with pytest.raises(ValueError, match="multiple of kv heads"):
        varlen_attn(torch.randn(4, 3, 8), x, x, ends, ends, 4, 4, enable_gqa=True)
    with pytest.raises(ValueError, match="cu_seq_q must rise from 0 to at most 4, but got"):
        varlen_attn(x, x, x, torch.tensor([0, 3, 2]), ends, 4, 4)
    with pytest.raises(ValueError, match="1 sequences of queries, but 2 of keys"):
        varlen_attn(x, x, x, ends, _ends([1, 3]), 4, 4)
    with pytest.raises(ValueError, match="expected a query of 3 dimensions"):
        varlen_attn(x[0], x, x, ends, ends, 4, 4)
    assert varlen_attn(x[:0], x[:0], x[:0], _ends([0]), _ends([0]), 0, 0).shape == (0, 2, 8)
