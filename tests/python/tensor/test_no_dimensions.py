"""Tensors without dimensions, lists without tensors, and None for an empty list of dimensions."""

import pytest

import rushlight as torch


def test_movedim_of_no_dimensions():
    x = torch.tensor(1.5)
    for moved in (x.movedim(0, 0), x.movedim(0, -1), x.moveaxis((0,), (-1,)), x.movedim((), ())):
        assert moved.shape == () and moved.item() == 1.5
    with pytest.raises(IndexError):
        x.movedim(1, 0)


def test_unflatten_needs_a_dimension():
    with pytest.raises(IndexError, match="has no dimensions"):
        torch.unflatten(torch.tensor(1.5), 0, (1,))


def test_topk_of_no_dimensions_is_the_tensor():
    for k in (0, 1):
        values, indices = torch.topk(torch.tensor(1.5), k)
        assert values.item() == 1.5 and indices.item() == 0


def test_block_diag_of_nothing():
    assert torch.block_diag().shape == (1, 0)


def test_none_for_an_empty_list():
    x = torch.tensor([[1.0, 5.0], [3.0, 2.0]])
    assert torch.amax(x, None).item() == 5 and x.amin(dim=None).item() == 1
    assert x.amax(None, True).shape == (1, 1)
    assert x.roll(1, None).tolist() == [[2, 1], [5, 3]]
    with pytest.raises(TypeError):
        torch.permute(x, None)
