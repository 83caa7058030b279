"""What takes over functions by `__torch_function__` and modes: entry points that are written in Python."""

import pytest

import rushlight as torch
from rushlight.overrides import TorchFunctionMode
from rushlight.utils._python_dispatch import TorchDispatchMode


class Like:
    """No tensor, but functions ask it first."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, args, kwargs


def test_gradients_of_tensor_likes():
    x, y = Like(), torch.ones(1, requires_grad=True)
    func, args, kwargs = torch.autograd.grad(x, [y], create_graph=True)
    assert func is torch.autograd.grad and args == ((x,), (y,))
    assert kwargs["create_graph"] is True and kwargs["grad_outputs"] is None


def test_gradients_of_subclasses_are_of_their_class():
    class Mine(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Mine).requires_grad_()
    (found,) = torch.autograd.grad((x * 3).sum(), x)
    assert type(found) is Mine and found.tolist() == [3, 3]


@pytest.mark.parametrize("base", [TorchDispatchMode, TorchFunctionMode])
def test_modes_need_plain_methods(base):
    name = f"__{'torch_dispatch' if base is TorchDispatchMode else 'torch_function'}__"
    mode = type("Mode", (base,), {name: classmethod(lambda cls, func, types, args=(), kwargs=None: None)})
    with pytest.raises(RuntimeError, match="classmethod is not supported, please make it a plain method"):
        with mode():
            pass
    assert (torch.ones(1) + 1).item() == 2


def test_operators_alone_are_not_traced():
    with pytest.raises(AssertionError, match="gelu is an operator"):
        torch.fx.symbolic_trace(torch.nn.functional.gelu)
    traced = torch.fx.symbolic_trace(lambda x: torch.nn.functional.gelu(x))
    assert traced(torch.zeros(1)).item() == 0
