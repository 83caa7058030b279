"""Tensors that the backward pass needs: hooks, changes, and when they are given back."""

import pytest

import rushlight as torch


def test_saved_tensors_may_be_changed_when_asked_for():
    x = torch.arange(1.0, 4.0, requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = y.sin()  # saves y
        w = y * y
        y.mul_(0)
        y[0] = 7
        torch.add(x.detach(), 1, out=y.detach())
        (z + w).sum().backward()
    x2 = x.detach().clone().requires_grad_()
    (x2.sin() + x2 * x2).sum().backward()
    torch.testing.assert_close(x.grad, x2.grad)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        late = x.clone().exp().sin()
    with pytest.raises(RuntimeError, match="outside"):
        late.sum().backward()


def test_saved_tensors_may_be_taken_away():
    class Square(torch.autograd.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with pytest.raises(RuntimeError, match="second time"):
                ctx.saved_tensors  # noqa: B018
            return 2 * x * grad

    x = torch.ones(2, requires_grad=True)
    y = Square.apply(x).sum()
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_numbers_are_not_shown_to_hooks_on_saved_tensors():
    def refuse(tensor):
        raise AssertionError("nothing needs to be saved")

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(refuse, refuse):
        (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_what_hooks_give_for_a_leaf_is_a_leaf():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x.pow(3)
    saved = y.grad_fn._saved_self
    assert saved.is_leaf and saved.requires_grad and saved.grad_fn is None
    assert repr(saved) == "tensor([1., 1.], requires_grad=True)"
    (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    gradient.sum().backward()
    assert x.grad.tolist() == [6, 6] and saved.grad is None


def test_hooks_must_not_write_to_what_is_saved():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
        with pytest.raises(RuntimeError, match="modifying its input in place"):
            torch.exp(x)
