"""`torch.tensordot` with dimensions that a tensor names."""

import pytest

import rushlight as torch


@pytest.mark.parametrize("function", [torch.tensordot, None])
def test_dimensions_in_a_tensor(function):
    def contracted(a: torch.Tensor, b: torch.Tensor, dims: torch.Tensor):
        return torch.tensordot(a, b, dims=dims)

    function = function or torch.jit.script(contracted)
    a, b = torch.arange(24.0).reshape(2, 3, 4), torch.arange(24.0).reshape(3, 4, 2)
    for dims in (torch.tensor([2]), torch.tensor(2)):
        assert torch.equal(function(a, b, dims), torch.tensordot(a, b, 2))
    pairs = torch.tensor([[1, 2], [0, 1]])
    assert torch.equal(function(a, b, pairs), torch.tensordot(a, b, ([1, 2], [0, 1])))
