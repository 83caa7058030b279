"""nn.attention: flex_attention against the same thing written out, block masks, causal biases, registries."""

import pytest

import rushlight as torch
from rushlight.nn.attention.bias import causal_lower_right, causal_upper_left
from rushlight.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)

B, H, Q, K, E, EV = 2, 4, 37, 45, 8, 6


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def near(b, h, q_idx, kv_idx):
    return (q_idx - kv_idx).abs() <= 3


@pytest.fixture
def operands():
    torch.manual_seed(0)
    shapes = ((B, H, Q, E), (B, H, K, E), (B, H, K, EV))
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def written_out(query, key, value, bias=0.0, visible=None, scale=None):
    scores = query @ key.mT * (query.size(-1) ** -0.5 if scale is None else scale) + bias
    if visible is not None:
        scores = scores.masked_fill(~visible, -float("inf"))
    return scores.softmax(-1) @ value, scores.logsumexp(-1)


def assert_same(ours, expected):
    torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-10)


def test_plain_attention_and_its_gradients(operands):
    result, lse = flex_attention(*operands, scale=0.3, return_lse=True)
    expected, expected_lse = written_out(*operands, scale=0.3)
    assert_same(result, expected)
    assert_same(lse, expected_lse)
    seed = torch.randn_like(result)
    ours = torch.autograd.grad([result, lse], operands, [seed, torch.ones_like(lse)], retain_graph=True)
    theirs = torch.autograd.grad([expected, expected_lse], operands, [seed, torch.ones_like(lse)])
    for mine, other in zip(ours, theirs):
        assert_same(mine, other)


def test_scores_change_with_what_the_function_refers_to(operands):
    table = torch.randn(H, Q, K, dtype=torch.float64, requires_grad=True)

    def shift(score, b, h, q_idx, kv_idx):
        return score * 2 + table[h, q_idx, kv_idx] * (b + 1)

    result = flex_attention(*operands, score_mod=shift)
    query, key, value = operands
    scores = query @ key.mT * E**-0.5 * 2 + table * torch.arange(1, B + 1).view(B, 1, 1, 1)
    expected = scores.softmax(-1) @ value
    assert_same(result, expected)
    wanted = [*operands, table]
    for mine, other in zip(
        torch.autograd.grad(result.sin().sum(), wanted), torch.autograd.grad(expected.sin().sum(), wanted)
    ):
        assert_same(mine, other)


def test_block_masks_hide_what_their_function_hides(operands):
    documents = torch.arange(K) // 11

    def same_document(b, h, q_idx, kv_idx):
        return documents[q_idx] == documents[kv_idx]

    rule = and_masks(or_masks(causal, near), same_document)
    mask = create_block_mask(rule, B, None, Q, K, BLOCK_SIZE=(8, 16))
    rows, columns = torch.arange(Q).view(Q, 1), torch.arange(K)
    visible = ((rows >= columns) | ((rows - columns).abs() <= 3)) & (documents[:Q].view(Q, 1) == documents)
    assert torch.equal(create_mask(rule, None, None, Q, K)[0, 0], visible)
    assert_same(flex_attention(*operands, block_mask=mask), written_out(*operands, visible=visible)[0])


def test_lists_of_blocks_count_without_a_function(operands):
    query, key, value = (x[:1, :1, :32] for x in operands)
    counts = torch.tensor([[[1, 2]]], dtype=torch.int32)
    indices = torch.tensor([[[[1, 0], [0, 1]]]], dtype=torch.int32)
    mask = BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=16)
    assert mask.mask_mod is noop_mask and mask.shape == (1, 1, 32, 32)
    visible = torch.ones(32, 32, dtype=torch.bool)
    visible[:16, :16] = False
    result = flex_attention(query, key, value, block_mask=mask)
    assert_same(result, written_out(query, key, value, visible=visible)[0])


def test_grouped_heads_and_what_else_is_returned(operands):
    query, key, value = operands
    key, value = key[:, :2], value[:, :2]
    result, aux = flex_attention(query, key, value, enable_gqa=True, return_aux=AuxRequest(max_scores=True))
    key, value = key.repeat_interleave(2, 1), value.repeat_interleave(2, 1)
    assert_same(result, written_out(query, key, value)[0])
    assert aux.lse is None
    assert_same(aux.max_scores, (query @ key.mT * E**-0.5).amax(-1))


def test_queries_that_see_nothing_give_zeros(operands):
    mask = create_block_mask(lambda b, h, q, k: (q > 1) & (k < 9), None, None, Q, K)
    result, lse = flex_attention(*operands, block_mask=mask, return_lse=True)
    assert result[:, :, :2].abs().sum() == 0 and (lse[:, :, :2] == -float("inf")).all()
    gradients = torch.autograd.grad(result.sum(), operands)
    assert all(g.isfinite().all() for g in gradients)


def test_half_precision(operands):
    halves = [x.detach().bfloat16() for x in operands]
    expected = written_out(*(x.double() for x in halves))[0]
    assert (flex_attention(*halves).double() - expected).abs().max() < 0.02


def test_block_masks_are_pytorchs():
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    for rule, size in ((causal, 32), (near, (16, 64))):
        ours = create_block_mask(rule, 2, 3, 150, 130, BLOCK_SIZE=size)
        theirs = flex.create_block_mask(rule, 2, 3, 150, 130, device="cpu", BLOCK_SIZE=size)
        assert str(ours) == str(theirs) and repr(ours) == repr(theirs)
        few = [make(rule, 1, 2, 64, 64, device="cpu") for make in (create_block_mask, flex.create_block_mask)]
        assert str(few[0]) == str(few[1])
        assert ours.shape == theirs.shape and ours.BLOCK_SIZE == theirs.BLOCK_SIZE
        for name in BlockMask._TENSOR_ATTRS:
            assert getattr(ours, name).tolist() == getattr(theirs, name).tolist(), name
        assert ours.to_dense().tolist() == theirs.to_dense().tolist()
        assert ours[1, 0:2].shape == theirs[1, 0:2].shape
        assert ours._adjust(100, 90).to_dense().tolist() == theirs._adjust(100, 90).to_dense().tolist()


def test_bad_calls(operands):
    query, key, value = (x.detach() for x in operands)
    mask = create_block_mask(causal, None, None, 20, 20)
    for bad, error, text in [
        (lambda: flex_attention(query[0], key, value), NotImplementedError, "4D"),
        (lambda: flex_attention(query, key[:, :2], value[:, :2]), ValueError, "enable_gqa=True"),
        (lambda: flex_attention(query, key[:, :3], value[:, :3], enable_gqa=True), ValueError, "multiple"),
        (lambda: flex_attention(query, key[..., :4], value), ValueError, "embedding dimension"),
        (lambda: flex_attention(query, key.float(), value), ValueError, "same dtype"),
        (lambda: flex_attention(query, key[:, :, :9], value), ValueError, "agree"),
        (lambda: flex_attention(query, key, value, block_mask=mask), ValueError, "smaller length"),
        (
            lambda: flex_attention(query[:, :, :9], key[:, :, :9], value[:, :, :9], block_mask=mask),
            ValueError,
            "_adjust",
        ),
        (lambda: flex_attention(query, key, value, block_mask=torch.ones(2)), TypeError, "BlockMask"),
        (lambda: create_block_mask(lambda s, b, h, q, k: s, 1, 1, 4, 4), AssertionError, "mask_mod"),
        (lambda: create_mask(lambda b, h: b, 1, 1, 4, 4), AssertionError, "4 or 5"),
        (lambda: and_masks(causal, 3), RuntimeError, "callable"),
    ]:
        with pytest.raises(error, match=text):
            bad()
    with pytest.raises(RuntimeError, match="sliced"):
        flex_attention(query[:, :, :20], key[:, :, :20], value[:, :, :20], block_mask=mask[0])


@pytest.mark.parametrize("make, shift", [(causal_upper_left, 0), (causal_lower_right, K - Q)])
def test_causal_biases(operands, make, shift):
    bias = make(Q, K)
    visible = torch.ones(Q, K, dtype=torch.bool).tril(shift)
    assert torch.equal(bias._materialize(), visible)
    result = torch.nn.functional.scaled_dot_product_attention(*operands, bias)
    assert_same(result, written_out(*operands, visible=visible)[0])
    with pytest.raises(ValueError, match="causal=True"):
        torch.nn.functional.scaled_dot_product_attention(*operands, bias, is_causal=True)


def test_registered_implementations():
    attention, log = torch.nn.attention, []

    class Handle:
        def remove(self):
            log.append("removed")

    attention.register_flash_attention_impl("mine", register_fn=Handle)
    attention.activate_flash_attention_impl("mine")
    assert attention.current_flash_attention_impl() == "mine"
    assert attention.list_flash_attention_impls() == ["mine"]
    attention.restore_flash_attention_impl()
    assert log == ["removed"] and attention.current_flash_attention_impl() is None
    with pytest.raises(ValueError, match="Unknown"):
        attention.activate_flash_attention_impl("other")


def test_joined_masks_are_named_after_how_they_are_joined():
    assert (and_masks(causal).__name__, or_masks(causal).__name__) == ("and_mask", "or_mask")
