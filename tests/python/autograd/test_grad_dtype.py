"""Tensor.grad_dtype: what dtype the gradients of a leaf have."""

import pytest

import rushlight as torch


class Widen(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad.double()


def leaf(dtype=torch.float32):
    return torch.ones(3, dtype=dtype, requires_grad=True)


def test_is_the_dtype_of_the_tensor_until_set():
    assert leaf().grad_dtype is torch.float32
    assert torch.ones(2, dtype=torch.int64).grad_dtype is torch.int64


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_gradients_are_cast_to_it(dtype):
    x = leaf()
    x.grad_dtype = dtype
    for _ in range(2):
        Widen.apply(x).sum().backward()
    assert x.grad.dtype is dtype and x.grad.tolist() == [2, 2, 2]
    assert torch.autograd.grad(Widen.apply(x).sum(), x)[0].dtype is dtype


def test_none_lets_gradients_be_as_they_come():
    x = leaf()
    Widen.apply(x).sum().backward()
    assert x.grad.dtype is torch.float32
    x.grad, x.grad_dtype = None, None
    Widen.apply(x).sum().backward()
    assert x.grad_dtype is None and x.grad.dtype is torch.float64


def test_an_accumulator_that_exists_learns_of_it():
    x = leaf()
    y = Widen.apply(x).sum()
    x.grad_dtype = torch.float16
    y.backward()
    assert x.grad.dtype is torch.float16


def test_assigned_gradients_must_have_it():
    x = leaf()
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with dtype"):
        x.grad = torch.ones(3, dtype=torch.float64)
    x.grad_dtype = torch.float64
    x.grad = torch.ones(3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="there is already a gradient with dtype"):
        x.grad_dtype = torch.float32


def test_refusals():
    y = leaf() * 2
    with pytest.raises(RuntimeError, match="can only be accessed on leaf tensors"):
        y.grad_dtype  # noqa: B018
    with pytest.raises(RuntimeError, match="can only be set on leaf tensors"):
        y.grad_dtype = None
    with pytest.raises(RuntimeError, match=r"must be a torch.dtype or None, but got int"):
        leaf().grad_dtype = 3
