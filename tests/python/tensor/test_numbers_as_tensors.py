"""Integer tensors of one element where an operator takes an int, and what Python leaves out of a call."""

import pytest

import rushlight as torch


@pytest.mark.parametrize("two", [2, [2], [[2]]])
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_one_integer_of_any_shape_is_an_int(two, dtype):
    n, x = torch.tensor(two, dtype=dtype), torch.arange(5.0)
    assert torch.topk(x, n).values.tolist() == [4, 3]
    assert x.narrow(0, 1, n).tolist() == [1, 2]
    assert torch.eye(n, n).shape == (2, 2)
    assert x.select(0, n) == 2
    assert [part.tolist() for part in x.split(n)] == [[0, 1], [2, 3], [4]]


def test_a_list_of_one_integer_stays_a_list_where_an_operator_takes_lists():
    x = torch.arange(6)
    assert [len(part) for part in torch.tensor_split(x, torch.tensor([2]))] == [2, 4]
    assert [len(part) for part in torch.tensor_split(x, torch.tensor(2))] == [3, 3]
    assert torch.repeat_interleave(torch.tensor([0, 2])).tolist() == [1, 1]


@pytest.mark.parametrize("number", [[1, 2], [1.0], [True]])
def test_other_tensors_are_no_int(number):
    with pytest.raises(TypeError, match="must be int, not Tensor"):
        torch.topk(torch.arange(5.0), torch.tensor(number))


def test_functions_of_losses_reduce_nothing_unless_told_to():
    """As PyTorch's, whose schemas say otherwise. torch.ops goes by these; nn.functional always tells."""
    x, y, sign = torch.rand(3, 2), torch.rand(3, 2), torch.ones(3)
    assert torch.kl_div(x, y).shape == torch.binary_cross_entropy_with_logits(x, y).shape == (3, 2)
    assert torch.hinge_embedding_loss(x, sign[:, None]).shape == (3, 2)
    assert torch.cosine_embedding_loss(x, y, sign).shape == torch.triplet_margin_loss(x, y, y).shape == (3,)
    assert torch.margin_ranking_loss(x[:, 0], y[:, 0], sign).shape == (3,)
    lengths = torch.tensor([5, 5, 5]), torch.tensor([1, 1, 1])
    assert torch.ctc_loss(
        torch.randn(5, 3, 2).log_softmax(-1), torch.ones(3, 1, dtype=torch.int64), *lengths
    ).shape == (3,)
    assert torch.kl_div(x, y, 1).shape == torch.kl_div(x, y, reduction=2).shape == ()
    assert torch.ops.aten.kl_div(x, y).shape == torch.nn.functional.mse_loss(x, y).shape == ()
