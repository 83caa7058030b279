"""make_fx(pre_dispatch=True): graphs of the calls as the program makes them."""

import pytest

import rushlight as torch
from rushlight.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from rushlight.utils._python_dispatch import TorchDispatchMode, _len_torch_dispatch_stack_pre_dispatch

aten = torch.ops.aten  # type: ignore[attr-defined]


def targets(module):
    return [n.target for n in module.graph.nodes if n.op == "call_function"]


@pytest.mark.parametrize("tracing_mode", ["real", "fake", "symbolic"])
def test_composites_are_whole(tracing_mode):
    def program(x, w):
        return torch.nn.functional.linear(x, w).reshape(-1), torch.matmul(x, x)

    args = torch.randn(3, 3), torch.randn(4, 3)
    module = make_fx(program, pre_dispatch=True, tracing_mode=tracing_mode)(*args)
    assert targets(module) == [aten.linear.default, aten.reshape.default, aten.matmul.default]
    torch.testing.assert_close(module(*args), program(*args))
    assert get_proxy_mode() is None and not _len_torch_dispatch_stack_pre_dispatch()


def test_grad_mode_is_part_of_the_graph():
    def program(x):
        y = x.sin()
        with torch.no_grad():
            z = y.cos()
        return (y + z.sin()).sum()

    def gradient(f):
        x = torch.arange(4.0, requires_grad=True)
        f(x).backward()
        return x.grad

    module = make_fx(program, pre_dispatch=True)(torch.arange(4.0, requires_grad=True))
    torch.testing.assert_close(gradient(module), gradient(program))


def test_grad_mode_is_as_before_after_the_graph():
    def program(x):
        torch._C._set_grad_enabled(False)
        return x.sin()

    x = torch.ones(2, requires_grad=True)
    try:
        module = make_fx(program, pre_dispatch=True)(x)
    finally:
        torch.set_grad_enabled(True)
    assert not module(x).requires_grad and torch.is_grad_enabled()


def test_autocast_is_part_of_the_graph():
    def program(x):
        with torch.autocast("cpu"):
            half = torch.matmul(x, x)
            with torch.autocast("cpu", enabled=False):
                full = x @ x
            return half, full, (x @ x).sum()

    x = torch.randn(3, 3)
    module = make_fx(program, pre_dispatch=True)(x)
    for mine, its in zip(module(x), program(x)):
        assert mine.dtype == its.dtype and torch.equal(mine, its)
    assert not torch.is_autocast_enabled("cpu")


READERS = {
    "item": lambda x: x.sum().item(),
    "truth": lambda x: bool(x.sum() > 0),
    "allclose": lambda x: torch.allclose(x, x),
    "equal": lambda x: torch.equal(x, x),
}


@pytest.mark.parametrize("pre_dispatch", [False, True])
@pytest.mark.parametrize("name", READERS)
def test_values_of_arguments_do_not_become_constants(name, pre_dispatch):
    with pytest.raises(RuntimeError, match="get value out of a tracing tensor"):
        make_fx(READERS[name], pre_dispatch=pre_dispatch)(torch.ones(2))


def test_modes_of_both_kinds():
    seen = []

    class Note(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((self._dispatch_key is not None, func))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 2, requires_grad=True)
    with Note(), Note(torch._C.DispatchKey.PreDispatch):
        torch.matmul(x, x).sum().backward()
    assert seen[:2] == [(True, aten.matmul.default), (False, aten.mm.default)]
    assert x.grad.tolist() == [[4, 4], [4, 4]]

    class Refuse(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        with Refuse(torch._C.DispatchKey.PreDispatch):
            torch.matmul(x, x)
    assert not _len_torch_dispatch_stack_pre_dispatch()
