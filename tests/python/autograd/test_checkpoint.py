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
