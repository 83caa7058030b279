"""Attention in bfloat16, whose products processors take in pairs or in tiles, beside that in doubles."""

import itertools

import pytest

import rushlight as torch
import rushlight.nn.functional as F

# queries, keys, width, width of the values: whole tiles, parts of them, one column more
SIZES = [
    (32, 256, 64, 64),
    (96, 300, 64, 64),
    (33, 31, 40, 24),
    (7, 513, 33, 65),
    (130, 17, 128, 16),
    (5, 1, 1, 1),
]


def operands(queries, keys, width, values, seed=0):
    torch.manual_seed(seed)
    shapes = (2, 2, queries, width), (2, 2, keys, width), (2, 2, keys, values)
    return [torch.randn(shape).bfloat16() for shape in shapes]


def mask_of(kind, queries, keys):
    if kind == "bool":
        mask = torch.rand(queries, keys) < 0.7
        mask[:, 0] = True
        return mask
    return torch.randn(2, 1, queries, keys).bfloat16() if kind == "added" else None


def close(found, expected, scale=1.0):
    error = (found.double() - expected.double()).abs().max().item()
    assert error <= 0.02 * max(scale, expected.abs().max().item()), error


@pytest.mark.parametrize(("sizes", "kind"), itertools.product(SIZES, ["none", "causal", "bool", "added"]))
def test_as_in_doubles(sizes, kind):
    q, k, v = operands(*sizes)
    options = {"is_causal": kind == "causal", "attn_mask": mask_of(kind, *sizes[:2])}
    wide = dict(options)
    if kind == "added":
        wide["attn_mask"] = options["attn_mask"].double()
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    exact = [x.double().requires_grad_() for x in (q, k, v)]
    out = F.scaled_dot_product_attention(*leaves, **options)
    expected = F.scaled_dot_product_attention(*exact, **wide)
    close(out, expected)
    flow = torch.randn(out.shape).bfloat16()
    for found, right in zip(
        torch.autograd.grad(out, leaves, flow),
        torch.autograd.grad(expected, exact, flow.double()),
        strict=True,
    ):
        close(found, right)


@pytest.mark.parametrize("scale", [0.0, -0.5, 2.0])
@pytest.mark.parametrize("causal", [False, True])
def test_any_scale(scale, causal):
    q, k, v = operands(40, 70, 64, 64)
    found = F.scaled_dot_product_attention(q, k, v, scale=scale, is_causal=causal)
    close(
        found,
        F.scaled_dot_product_attention(q.double(), k.double(), v.double(), scale=scale, is_causal=causal),
    )


def gradients_beside_doubles(q, k, v, **options):
    """Whether gradients in bfloat16 are those in doubles."""
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    exact = [x.double().requires_grad_() for x in (q, k, v)]
    out = F.scaled_dot_product_attention(*leaves, **options)
    flow = torch.randn(out.shape).bfloat16()
    found = torch.autograd.grad(out, leaves, flow)
    expected = torch.autograd.grad(F.scaled_dot_product_attention(*exact, **options), exact, flow.double())
    for one, right in zip(found, expected, strict=True):
        assert not one.isnan().any()
        close(one, right)


@pytest.mark.parametrize("scale", [0.0, -0.5, 1.5])
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_at_any_scale(scale, causal):
    gradients_beside_doubles(*operands(70, 140, 40, 64), scale=scale, is_causal=causal)


@pytest.mark.parametrize("queries", [1, 31, 65, 200])
def test_gradients_of_heads_that_share_keys(queries):
    q, k, v = operands(queries, 150, 32, 48)
    q = torch.randn(2, 6, queries, 32).bfloat16()
    gradients_beside_doubles(q, k, v, enable_gqa=True)


def test_gradients_where_a_query_sees_nothing():
    q, k, v = operands(37, 70, 64, 64)
    mask = torch.rand(37, 70) < 0.5
    mask[3] = False
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    out = F.scaled_dot_product_attention(*leaves, attn_mask=mask)
    grads = torch.autograd.grad(out, leaves, torch.ones_like(out))
    assert not any(grad.isnan().any() for grad in grads)
    assert (grads[0][..., 3, :] == 0).all()


def test_a_query_that_sees_nothing_gets_zeros():
    q, k, v = operands(40, 70, 64, 64)
    mask = torch.ones(40, 70, dtype=torch.bool)
    mask[3] = False
    found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert (found[..., 3, :] == 0).all() and not found.isnan().any()


def test_few_queries_as_many():
    """One query is computed where keys and values lie, many by tiles: the same up to rounding."""
    q, k, v = operands(64, 200, 64, 64)
    many = F.scaled_dot_product_attention(q, k, v)
    one = torch.cat([F.scaled_dot_product_attention(q[..., i : i + 1, :], k, v) for i in range(64)], -2)
    close(one, many)
