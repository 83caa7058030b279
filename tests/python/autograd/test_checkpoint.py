"""Activation checkpointing gives the same gradients and forgets what lies between."""

import pytest

import rushlight
from rushlight.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)


def _block(x, w):
    return (rushlight.nn.functional.dropout(x @ w, 0.5) * x).exp().sin()


def _gradients(reentrant):
    rushlight.manual_seed(0)
    x = rushlight.rand(3, 3, requires_grad=True)
    w = rushlight.rand(3, 3, requires_grad=True)
    y = _block(x, w) if reentrant is None else checkpoint(_block, x, w, use_reentrant=reentrant)
    y.sum().backward()
    return y.tolist(), x.grad.tolist(), w.grad.tolist(), rushlight.rand(2).tolist()


@pytest.mark.parametrize("reentrant", [True, False])
def test_same_gradients_and_random_stream(reentrant):
    assert _gradients(reentrant) == _gradients(None)


def test_without_early_stop():
    with set_checkpoint_early_stop(False):
        assert _gradients(False) == _gradients(None)


def test_intermediates_are_not_kept():
    import weakref

    seen = []

    def block(x):
        middle = x.exp()
        seen.append(weakref.ref(middle))
        return middle.sin()

    x = rushlight.ones(2, requires_grad=True)
    y = checkpoint(block, x, use_reentrant=False)
    assert seen[0]() is None
    y.sum().backward()
    assert len(seen) == 2 and x.grad is not None


def test_works_with_grad_and_retain_graph():
    x = rushlight.ones(2, requires_grad=True)
    y = checkpoint(lambda a, scale: (a * a * a) * scale, x, use_reentrant=False, scale=2.0).sum()
    first = rushlight.autograd.grad(y, x, retain_graph=True)[0].tolist()
    assert first == rushlight.autograd.grad(y, x)[0].tolist() == [6.0, 6.0]


def test_another_computation_is_noticed():
    calls = []

    def block(x):
        calls.append(1)
        return x.exp().sin() if len(calls) == 1 else x + 1

    y = checkpoint(block, rushlight.ones(2, requires_grad=True), use_reentrant=False)
    with pytest.raises(CheckpointError, match="A different number of tensors"):
        y.sum().backward()


def test_warnings_and_mistakes():
    x = rushlight.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(rushlight.exp, x)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(rushlight.exp, x.detach(), use_reentrant=True)
    with pytest.raises(ValueError, match="Unexpected keyword arguments"):
        checkpoint(rushlight.exp, x, use_reentrant=True, other=1)


@pytest.mark.parametrize("reentrant", [True, False])
def test_sequential(reentrant):
    model = rushlight.nn.Sequential(*(rushlight.nn.Linear(3, 3) for _ in range(5)))
    x = rushlight.rand(2, 3, requires_grad=True)
    model(x).sum().backward()
    expected, x.grad = [p.grad.tolist() for p in model.parameters()], None
    model.zero_grad()
    checkpoint_sequential(model, 2, x, use_reentrant=reentrant).sum().backward()
    assert [p.grad.tolist() for p in model.parameters()] == expected


def test_a_reentrant_checkpoint_refuses_part_of_the_gradients():
    x = rushlight.randn(2, requires_grad=True)
    y = checkpoint(rushlight.exp, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match="torch.utils.checkpoint is incompatible with .grad"):
        rushlight.autograd.grad(y, x)
    checkpoint(rushlight.exp, x, use_reentrant=True).sum().backward()
    rushlight.testing.assert_close(x.grad, x.detach().exp())


def test_saved_tensors_are_unpacked_once_in_a_pass():
    class Twice(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x, constant):
            ctx.save_for_backward(x, constant)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            _, found = ctx.saved_tensors
            assert found is constant
            with pytest.raises(RuntimeError, match="already unpacked once"):
                ctx.saved_tensors  # noqa: B018
            return grad * 2, None

    x, constant = rushlight.ones(1, requires_grad=True), rushlight.ones(1)
    y = checkpoint(lambda x: Twice.apply(x * 3, constant), x, use_reentrant=False)
    y.backward(retain_graph=True)
    y.backward()  # another pass computes again
    assert x.grad.item() == 12


def test_a_second_computation_that_saves_more():
    calls = []

    def f(x):
        calls.append(1)
        return x.sin().exp() if len(calls) == 1 else x.sin().exp().sin()

    y = checkpoint(f, rushlight.ones(1, requires_grad=True), use_reentrant=False, early_stop=False)
    with pytest.raises(RuntimeError, match="trying to save more tensors during recomputation"):
        y.backward()


@pytest.mark.parametrize("early_stop", [True, False])
def test_gradients_inside_of_what_is_computed_again(early_stop):
    def gradient(x):
        with rushlight.enable_grad():
            return rushlight.autograd.grad(x.sin().exp().sin(), x, create_graph=True)[0]

    def kept(x):
        return checkpoint(gradient, x, use_reentrant=False)

    x = rushlight.tensor(0.3, requires_grad=True)
    with set_checkpoint_early_stop(early_stop):
        (found,) = rushlight.autograd.grad(kept(x), x)
    (wanted,) = rushlight.autograd.grad(gradient(x), x)
    assert rushlight.allclose(found, wanted)
