"""How results lie in memory, and writes that would read what they write."""

import itertools

import pytest

import rushlight as torch


@pytest.mark.parametrize("op", [torch.add, torch.eq])
def test_an_empty_output_lies_as_a_new_result_does(op):
    x = torch.randn(2, 3, 4)
    for order in itertools.permutations(range(3)):
        a = x.permute(order)
        for b in (a, torch.randn(a.shape[-1])):
            wanted = op(a, b)
            out = torch.empty(0, dtype=wanted.dtype)
            assert op(a, b, out=out) is out
            assert out.stride() == wanted.stride() == a.stride() and torch.equal(out, wanted)
    out = torch.empty_strided((2, 3, 4), (1, 2, 6))
    torch.neg(x, out=out)
    assert out.stride() == (1, 2, 6) and torch.equal(out, -x)


def test_indices_are_not_written_through():
    at = torch.tensor([2, 1, 0])
    for write in (
        lambda: at.index_fill_(0, at, 0),
        lambda: at.index_put_((at,), at.clone()),
        lambda: at.index_put_((at.clone(),), at),
    ):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            write()
    assert at.tolist() == [2, 1, 0]
    assert at.index_fill(0, at, 7).tolist() == [7, 7, 7]
    parted = torch.arange(6)
    assert parted[:3].index_fill_(0, torch.tensor([1]), 9).tolist() == [0, 9, 2]


def test_legacy_ways_to_name_a_type():
    x = torch.tensor([1, 2], dtype=torch.int32)
    assert x.type(torch.Tensor).dtype is torch.get_default_dtype()
    assert x.new(size=(3, 4)).shape == (3, 4) and x.new(size=(3,)).dtype is torch.int32
    with pytest.warns(UserWarning, match="deprecated as of PyTorch 2.1, please use torch.set_default_dtype"):
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.get_default_dtype() is torch.float32


def test_thresholds_of_what_lies_in_one_place():
    """PyTorch lets this operator alone write to elements that share their memory."""
    x = torch.tensor([[0.0], [2.0]])
    wide = x.expand(2, 3)
    assert torch.nn.functional.threshold_(wide, 1.0, 5.0) is wide
    assert x.tolist() == [[5], [2]] and wide.tolist() == [[5] * 3, [2] * 3]
    with pytest.raises(RuntimeError, match="more than one element"):
        torch.relu_(x.expand(2, 3))
