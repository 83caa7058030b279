"""What takes over functions by `__torch_function__` and modes: entry points that are written in Python."""

import inspect

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


@pytest.mark.parametrize("name", ["gelu", "softmax", "layer_norm", "conv1d", "mse_loss"])
def test_operators_are_traced_as_functions(name):
    """Of `torch.nn.functional`, many are Python functions in PyTorch and operators here."""
    function = getattr(torch.nn.functional, name)
    traced = torch.fx.symbolic_trace(function)
    names = [n.target for n in traced.graph.nodes if n.op == "placeholder"]
    assert names == [n for n in inspect.signature(function).parameters if n != "out"]
    assert [n.target for n in traced.graph.nodes if n.op == "call_function"] == [function]
    x = torch.randn(2, 3, 4)
    weight = torch.randn(5, 3, 2)
    others = {"softmax": (-1,), "layer_norm": ((4,),), "conv1d": (weight,), "mse_loss": (x + 1,)}
    given = (x, *others.get(name, ()))
    torch.testing.assert_close(traced(*given), function(*given))
