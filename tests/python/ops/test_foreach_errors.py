"""What is wrong with lists of tensors, in PyTorch's words."""

import pytest

import rushlight as torch

PAIR = [torch.ones(2), torch.ones(2)]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "clamp_min", "pow"])
def test_lists_of_other_lengths(name):
    function = getattr(torch, f"_foreach_{name}")
    for f in (function, getattr(torch, f"_foreach_{name}_")):
        with pytest.raises(
            RuntimeError, match="^Tensor lists must have the same number of tensors, got 2 and 1"
        ):
            f(PAIR, PAIR[:1])
        with pytest.raises(
            RuntimeError, match="^Tensor list must have same number of elements as scalar list"
        ):
            f(PAIR, [1.0, 2.0, 3.0])
    assert [t.shape for t in function(PAIR, PAIR)] == [(2,), (2,)]


@pytest.mark.parametrize("name", ["exp", "norm", "zero_", "neg_"])
def test_empty_lists(name):
    with pytest.raises(RuntimeError, match="^Tensor list must have at least one tensor"):
        getattr(torch, f"_foreach_{name}")([])


def test_tensors_that_are_no_numbers():
    with pytest.raises(RuntimeError, match="scalar tensor expected to be 0 dim but it has 1 dimensions"):
        torch._foreach_mul(PAIR, torch.ones(1))
    with pytest.raises(RuntimeError, match="same number of elements as scalar list"):
        torch._foreach_addcdiv(PAIR, PAIR, PAIR, [1.0])


def test_unscaling_takes_a_factor_of_one_element():
    grads, found = [torch.full((2,), 8.0)], torch.zeros(1)
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor([0.25]))
    assert grads[0].tolist() == [2, 2] and not found
