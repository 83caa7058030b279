"""Operators of a program that take functions, `HigherOrderOperator`."""

import pytest

import rushlight as torch
from rushlight._C import DispatchKey
from rushlight._ops import HigherOrderOperator
from rushlight.utils._python_dispatch import TorchDispatchMode


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Other(Mode):
    supports_higher_order_operators = False


class Through(Mode):
    supports_higher_order_operators = True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen = [*getattr(self, "seen", []), str(func)]
        return func(*args, **(kwargs or {}))


@pytest.fixture
def twice():
    class Twice(HigherOrderOperator):
        def __init__(self):
            super().__init__("twice")

        def __call__(self, function, x):
            return super().__call__(function, x)

    op, op.calls = Twice(), []

    @op.py_impl(DispatchKey.CompositeExplicitAutograd)
    def plain(function, x):
        op.calls.append("plain")
        return function(function(x))

    @op.py_autograd_impl
    def recorded(function, x):
        op.calls.append("autograd")
        return op(function, x)

    @op.py_impl(Mode)
    def in_mode(mode, function, x):
        op.calls.append(type(mode).__name__)
        return op(function, x)

    return op


def test_the_innermost_rule_runs_and_reaches_the_next(twice):
    x = torch.ones(2, requires_grad=True)
    with Mode():
        y = twice(torch.sin, x)
    assert twice.calls == ["Mode", "autograd", "plain"]
    assert torch.equal(y, x.sin().sin()) and y.requires_grad
    twice.calls.clear()
    twice(torch.sin, x.detach())
    with torch.no_grad():
        twice(torch.sin, x)
    assert twice.calls == ["plain", "plain"]


def test_modes_without_a_rule(twice):
    x = torch.ones(2)
    with (
        Other(),
        pytest.raises(NotImplementedError, match="no rule registered for HigherOrderOperator twice"),
    ):
        twice(torch.sin, x)
    with Through() as mode:
        twice(torch.sin, x)
    assert mode.seen[0] == "twice"


def test_refusals(twice):
    with pytest.raises(RuntimeError, match="Direct instantiation"):
        HigherOrderOperator("name")
    with pytest.raises(TypeError, match="abstract class Bare"):
        type("Bare", (HigherOrderOperator,), {})("name")
    with pytest.raises(NotImplementedError, match="function transform that is active"):
        torch.vmap(lambda t: twice(torch.sin, t))(torch.ones(2, 3))
    twice.fallthrough(DispatchKey.CompositeExplicitAutograd)
    with pytest.raises(NotImplementedError, match="could not find kernel for HigherOrderOperator twice"):
        twice(torch.sin, torch.ones(2))
    with pytest.raises(AssertionError, match="already has"):
        twice.py_impl(Mode)(lambda mode, function, x: x)
