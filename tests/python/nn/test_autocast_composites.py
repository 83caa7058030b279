"""Composites under autocast on the CPU: what is computed in float32, to the digits that PyTorch gives."""

import pytest

import rushlight as torch

oracle = pytest.importorskip("torch")

CALLS = {
    "cosine_embedding_loss": lambda t, a, b, y: t.cosine_embedding_loss(a, b, y, 0.1, 1),
    "hinge_embedding_loss": lambda t, a, b, y: t.hinge_embedding_loss(a[:, 0], y, 1.0, 1),
    "margin_ranking_loss": lambda t, a, b, y: t.margin_ranking_loss(a[:, 0], b[:, 0], y, 0.1, 1),
    "triplet_margin_loss": lambda t, a, b, y: t.triplet_margin_loss(a, b, a.flip(0), reduction=1),
    "poisson_nll_loss": lambda t, a, b, y: t.poisson_nll_loss(a, b.abs(), True, True, 1e-8, 1),
    "kl_div": lambda t, a, b, y: t.kl_div(a, b.abs(), 1),
    "binary_cross_entropy_with_logits": lambda t, a, b, y: t.binary_cross_entropy_with_logits(
        a, b.sigmoid(), None, None, 1
    ),
    "nn.cosine_embedding_loss": lambda t, a, b, y: t.nn.functional.cosine_embedding_loss(a, b, y),
    "nn.hinge_embedding_loss": lambda t, a, b, y: t.nn.functional.hinge_embedding_loss(a[:, 0], y),
    "nn.margin_ranking_loss": lambda t, a, b, y: t.nn.functional.margin_ranking_loss(a[:, 0], b[:, 0], y),
    "nn.triplet_margin_loss": lambda t, a, b, y: t.nn.functional.triplet_margin_loss(a, b, a.flip(0)),
    "nn.poisson_nll_loss": lambda t, a, b, y: t.nn.functional.poisson_nll_loss(a, b.abs()),
    "nn.kl_div": lambda t, a, b, y: t.nn.functional.kl_div(a, b.abs(), reduction="sum"),
    "nn.l1_loss": lambda t, a, b, y: t.nn.functional.l1_loss(a, b),
    "nn.soft_margin_loss": lambda t, a, b, y: t.nn.functional.soft_margin_loss(a[:, 0], y),
    "nn.multi_margin_loss": lambda t, a, b, y: t.nn.functional.multi_margin_loss(a, (y + 1) // 2),
    "nn.multilabel_margin_loss": lambda t, a, b, y: t.nn.functional.multilabel_margin_loss(
        a, t.zeros(4, 5, dtype=t.int64)
    ),
    "cosine_similarity": lambda t, a, b, y: t.cosine_similarity(a, b),
    "pairwise_distance": lambda t, a, b, y: t.pairwise_distance(a, b),
    "cdist": lambda t, a, b, y: t.cdist(a, b),
    "tensordot": lambda t, a, b, y: t.tensordot(a, b, ([1], [1])),
    "einsum": lambda t, a, b, y: t.einsum("ij,kj->ik", a, b),
    "chain_matmul": lambda t, a, b, y: t.chain_matmul(a, b.T, a),
    "bilinear": lambda t, a, b, y: t.bilinear(a, b, a[:, :, None] * b[:1, None]),
    "conv_tbc": lambda t, a, b, y: t.conv_tbc(a[:, None], b[:3, :, None].expand(3, 5, 2), a[0, :2]),
    "local_response_norm, lines": lambda t, a, b, y: t.nn.functional.local_response_norm(a[None], 2),
    "local_response_norm": lambda t, a, b, y: t.nn.functional.local_response_norm(
        a[None, None] + b[:, None], 2
    ),
    "instance_norm": lambda t, a, b, y: t.nn.functional.instance_norm(a[None]),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", CALLS)
def test_composites_cast_as_pytorch_does(name, dtype):
    results = []
    for module in (torch, oracle):
        a, b = (oracle.randn(4, 5, generator=oracle.Generator().manual_seed(seed)) for seed in (0, 1))
        a, b, y = (module.tensor(v.tolist()) for v in (a, b, oracle.tensor([1, -1, 1, -1])))
        a, b = (v.to(getattr(module, dtype)) for v in (a, b))
        with module.autocast("cpu", dtype=module.bfloat16):
            results.append(CALLS[name](module, a, b, y))
    ours, theirs = results
    assert str(ours.dtype) == str(theirs.dtype)
    half = theirs.dtype == oracle.bfloat16 or name == "bilinear"  # a product in half precision, then a sum
    rounding = {"rtol": 1.6e-2, "atol": 1e-2} if half else {"rtol": 1e-5, "atol": 1e-6}
    oracle.testing.assert_close(oracle.tensor(ours.tolist()), theirs.float(), **rounding)


def test_a_kernel_that_multiplies_keeps_its_type():
    for t in (torch, oracle):
        with t.autocast("cpu", dtype=t.bfloat16):
            result = t.linalg.matrix_exp(4 * t.eye(3))
        assert result.dtype is t.float32
        assert abs(result[0, 0].item() - 54.59815) < 1e-3
