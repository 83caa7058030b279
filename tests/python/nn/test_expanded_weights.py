"""Weights of which each example has a gradient, against one backward pass for each example."""

import pytest

import rushlight as torch
from rushlight.nn import functional as F
from rushlight.nn.utils._expanded_weights import ExpandedWeight
from rushlight.nn.utils._expanded_weights import expanded_weights_utils as utils

CALLS = {
    "linear": (lambda x, w, b: F.linear(x, w, b), (3, 4), (5, 4), (5,)),
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, padding="same"), (3, 2, 6), (4, 2, 3), (4,)),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, stride=2), (3, 2, 6, 5), (4, 2, 3, 3), (4,)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (3, 4, 5), (4,), (4,)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (5,), w, b), (3, 4, 5), (5,), (5,)),
    "instance_norm": (
        lambda x, w, b: F.instance_norm(x, torch.zeros(4), torch.ones(4), weight=w, bias=b),
        (3, 4, 5),
        (4,),
        (4,),
    ),
}


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", CALLS)
def test_gradients_by_example(name, reduction):
    torch.manual_seed(0)
    call, *shapes = CALLS[name]
    x, *weights = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    if name == "instance_norm":
        x, *weights = (t.detach().float().requires_grad_() for t in (x, *weights))
    result = call(x, *(ExpandedWeight(w, 3, reduction) for w in weights))
    torch.testing.assert_close(result, call(x, *weights), rtol=0, atol=0)
    loss = result.pow(2).sum()
    (loss / 3 if reduction == "mean" else loss).backward()
    for i in range(3):
        expected = torch.autograd.grad(call(x[i : i + 1], *weights).pow(2).sum(), [x, *weights])
        torch.testing.assert_close(x.grad[i] * (3 if reduction == "mean" else 1), expected[0][i])
        for weight, by_itself in zip(weights, expected[1:], strict=True):
            assert weight.grad is None
            torch.testing.assert_close(weight.grad_sample[i], by_itself)


def test_embedding_takes_indices():
    table, at = torch.rand(6, 3, requires_grad=True), torch.tensor([[0, 2], [2, 2]])
    F.embedding(at, ExpandedWeight(table, 2, "sum")).sum().backward()
    assert table.grad_sample[:, :, 0].tolist() == [[1, 0, 1, 0, 0, 0], [0, 0, 2, 0, 0, 0]]


def test_refusals():
    weight = ExpandedWeight(torch.rand(4, 4, requires_grad=True), 3, "sum")
    with pytest.raises(RuntimeError, match="cannot handle function add"):
        torch.add(torch.rand(4, 4), weight)
    with pytest.raises(RuntimeError, match="batch dimension"):
        F.linear(torch.rand(4), weight)
    with pytest.raises(RuntimeError, match="batch size matching input"):
        F.linear(torch.rand(2, 4), weight)
    with pytest.raises(RuntimeError, match="mixture of ExpandedWeight parameters"):
        F.linear(torch.rand(3, 4), weight, torch.rand(4, requires_grad=True))
    with pytest.raises(RuntimeError, match="require_grad"):
        ExpandedWeight(torch.rand(2), 3, "sum")


def test_helpers():
    args, kwargs = utils.standard_kwargs(("bias",), (1, 2, 3))
    assert args == (1, 2) and kwargs == {"bias": 3}
    t = torch.rand(2, 3, 4, 5)
    assert torch.equal(utils.sum_over_all_but_batch_and_last_n(t, 1), t.sum((1, 2)))
    assert utils.sum_over_all_but_batch_and_last_n(t, 3) is t
    assert utils.unpack_expanded_weight_or_tensor(4) is None
