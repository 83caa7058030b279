"""make_fx: what it looks through, what it may read, and what it refuses."""

import pytest

import rushlight as torch
from rushlight.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten  # type: ignore[attr-defined]


class Wrapped(torch.Tensor):
    """Computes with the tensor that it holds, doubled."""

    @staticmethod
    def __new__(cls, held):
        made = torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        held = [a.held * 2 if isinstance(a, cls) else a for a in args]
        return func(*held, **(kwargs or {}))


@pytest.mark.parametrize("pre_dispatch", [False, True])
@pytest.mark.parametrize("tracing_mode", ["real", "fake", "symbolic"])
def test_what_a_class_does_is_in_the_graph(tracing_mode, pre_dispatch):
    def program(x):
        return Wrapped(x.sin()) + x

    module = make_fx(program, tracing_mode=tracing_mode, pre_dispatch=pre_dispatch)(torch.randn(3))
    for x in (torch.randn(3), torch.randn(3)):
        torch.testing.assert_close(module(x), program(x))


def test_numbers_of_constants_may_be_read():
    def program(x):
        (one,) = torch.unbind(torch.tensor([1]), 0)
        total = (one + 2).add_(1)
        return x * total.item()

    assert make_fx(program)(torch.ones(1))(torch.ones(1)).item() == 4


CHANCE = {
    "drawn": lambda x: torch.randn(()).item(),
    "written by chance": lambda x: torch.tensor(2.0).normal_().item(),
    "written from an argument": lambda x: torch.tensor(2.0).copy_(x[0]).item(),
}


@pytest.mark.parametrize("name", CHANCE)
def test_numbers_that_arguments_or_chance_decide_are_refused(name):
    with pytest.raises(RuntimeError, match="get value out of a tracing tensor"):
        make_fx(CHANCE[name])(torch.ones(2))
    make_fx(CHANCE[name], _error_on_data_dependent_ops=False)(torch.ones(2))


def test_nodes_keep_the_shapes_that_values_had():
    def program(x):
        y = x.clone()
        y.unsqueeze_(0)
        return y

    module = make_fx(program, tracing_mode="fake")(torch.ones(3))
    assert [tuple(n.meta["val"].shape) for n in module.graph.nodes if "val" in n.meta] == [(3,), (3,), (1, 3)]


def test_real_tensors_among_fake_ones():
    held = torch.ones(2)
    with pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors"):
        make_fx(lambda x: x + held, tracing_mode="fake")(torch.ones(2))
    module = make_fx(lambda x: x + held, tracing_mode="fake", _allow_non_fake_inputs=True)(torch.ones(2))
    assert module(torch.ones(2)).tolist() == [2, 2]


def test_traces_within_traces():
    def program(x):
        inner = make_fx(lambda y: y.sum() + torch.ones(()))(x)
        assert [n.target for n in inner.graph.nodes][1:3] == [aten.sum.default, aten.ones.default]
        return inner(x.sin())

    outer = make_fx(program)(torch.ones(2))
    calls = [n.target for n in outer.graph.nodes if n.op == "call_function"]
    assert calls == [aten.sin.default, aten.sum.default, aten.ones.default, aten.add.Tensor]
