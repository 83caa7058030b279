"""Kernels of built-in operators that a program replaces, for as long as its library lives."""

import pytest

import rushlight as torch
from rushlight.library import _scoped_library


def test_a_kernel_is_replaced_below_autograd():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with _scoped_library("aten", "IMPL") as library:
        library.impl("aten::sin", lambda x: x.cos(), "CPU")
        y = torch.sin(x)
        torch.testing.assert_close(y, x.cos())
        y.sum().backward()
        torch.testing.assert_close(x.grad, x.detach().cos())  # the derivative is that of sin
        with torch.device("meta"):
            assert torch.sin(torch.ones(2)).is_meta
    torch.testing.assert_close(torch.sin(x), torch.tensor([1.0, 2.0]).double().sin().float())


def test_only_the_named_form_is_replaced():
    x = torch.tensor([1.0, 2.0])
    with _scoped_library("aten", "IMPL") as library:
        library.impl(torch.ops.aten.add_.Tensor, lambda x, y, alpha=1: x.copy_(y * 10), "CPU")
        assert (x + x).tolist() == [2.0, 4.0]
        x += torch.ones(2)
        assert x.tolist() == [10.0, 10.0]


def test_a_function_in_place_of_the_derivative():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with _scoped_library("aten", "IMPL") as library:
        library.impl("sin", lambda x: x * 3, "AutogradCPU")
        torch.sin(x).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
    y = torch.sin(x)
    assert type(y.grad_fn).__name__ == "SinBackward0"


def test_a_composite_is_replaced():
    with _scoped_library("aten", "IMPL") as library:
        library.impl("linear", lambda x, w, b=None: x * 7, "CompositeImplicitAutograd")
        x = torch.ones(1, 2, requires_grad=True)
        y = torch.nn.functional.linear(x, torch.ones(2, 2))
        assert y.tolist() == [[7.0, 7.0]]
        y.sum().backward()
        assert x.grad.tolist() == [[7.0, 7.0]]
    assert torch.nn.functional.linear(x, torch.ones(2, 2)).tolist() == [[2.0, 2.0]]


def test_what_cannot_be_replaced_is_refused():
    with _scoped_library("aten", "IMPL") as library:
        with pytest.raises(RuntimeError, match="no operators named aten::nothing"):
            library.impl("nothing", lambda x: x, "CPU")
        with pytest.raises(TypeError, match="required to be a callable"):
            library.impl("sin", 3, "CPU")
    with _scoped_library("foo_replaced", "DEF") as library:
        with pytest.raises(RuntimeError, match="operator name does not match namespace"):
            library.impl(torch.ops.aten.sin.default, lambda x: x, "CPU")


def test_a_second_kernel_is_refused_when_asked():
    with _scoped_library("aten", "IMPL") as first, _scoped_library("aten", "IMPL") as second:
        first.impl("sin", lambda x: x, "CPU")
        with pytest.raises(RuntimeError, match="already a kernel registered from python"):
            second.impl("sin", lambda x: x, "CPU", allow_override=False)
