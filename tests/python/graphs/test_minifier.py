"""Graphs without repeated steps, and the smallest part of a graph that fails."""

import pytest

import rushlight as torch
from rushlight import fx
from rushlight._functorch.compile_utils import fx_graph_cse, get_outputs, get_placeholders
from rushlight._functorch.fx_minifier import minifier
from rushlight.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten


def sums(x):
    return x.sum(1) + x.sum(dim=1) + x.sum(dim=1, keepdim=True) + x.sum()


def chains(x):
    a, b = x.cos().sin(), x.cos().sin()
    return (a + a) + (b + b)


def drawn(x):
    return torch.rand_like(x) + torch.rand_like(x)


def written(x):
    a = x.cos()
    b = x.cos()
    a.view(-1).add_(1)
    return a + b


def kinds(x):
    return torch.full_like(x, 1) + torch.full_like(x, 1.0) + torch.full_like(x, 1.0)


@pytest.mark.parametrize("function, fewer", [(sums, 1), (chains, 3), (drawn, 0), (written, 0), (kinds, 1)])
def test_each_step_is_made_once(function, fewer):
    x = torch.randn(3, 3)
    graph = make_fx(function)(x).graph
    made = fx_graph_cse(graph)
    assert len(made.nodes) == len(graph.nodes) - fewer
    assert len(fx_graph_cse(made).nodes) == len(made.nodes)
    if function is not drawn:
        assert torch.equal(fx.GraphModule({}, made)(x), function(x))


def calls(target):
    return lambda module, inputs: any(n.target is target for n in module.graph.nodes)


def test_one_step_is_left():
    def function(x, y):
        y = y / 3
        x = (x + 3) * y
        return x + y

    given = [torch.randn(3), torch.randn(3)]
    kept = []
    small, inputs = minifier(
        make_fx(function)(*given), given, calls(aten.mul.Tensor), lambda module, inputs: kept.append(module)
    )
    assert [n.op for n in small.graph.nodes] == ["placeholder", "placeholder", "call_function", "output"]
    assert torch.equal(small(*inputs)[0], (given[0] + 3) * (given[1] / 3))
    assert kept and len(kept[-1].graph.nodes) == 4


def test_what_makes_a_number_that_is_none():
    def function(x):
        x = (x * 3 + 5).cos()
        zero = x - x
        return ((zero / zero + 3) * 2,)

    def fails(module, inputs):
        return not any(x.isnan().any() for x in inputs) and bool(module(*inputs)[0].isnan().any())

    x = torch.randn(3)
    small, inputs = minifier(make_fx(function)(x), [x], fails)
    assert len(small.graph.nodes) == 3 and len(inputs) == 1
    assert small(*inputs)[0].isnan().all()


def test_results_that_are_inputs_or_come_in_pairs():
    def several(a, b, c):
        return a.sin(), b, c.cos(), a.sin() * c.cos()

    def pair(a, b):
        spread, mean = torch.std_mean(a)
        return (spread + b * mean,)

    def returned(module, inputs):
        return not set(get_placeholders(module.graph)).isdisjoint(get_outputs(module.graph))

    given = [torch.randn(3) for _ in range(3)]
    small, inputs = minifier(make_fx(several)(*given), given, returned)
    assert len(small.graph.nodes) == 2 and len(inputs) == 1
    small, inputs = minifier(make_fx(pair)(*given[:2]), given[:2], calls(aten.add.Tensor))
    assert len(small.graph.nodes) == 4 and len(inputs) == 2


def test_a_graph_that_calls_modules():
    class Divided(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = torch.nn.ReLU()

        def forward(self, x):
            y = self.relu(x)
            return (y - y) / (y - y) + 3

    def fails(module, inputs):
        return not any(x.isnan().any() for x in inputs) and bool(module(*inputs)[0].isnan().any())

    small, inputs = minifier(fx.symbolic_trace(Divided()), [torch.randn(3)], fails)
    assert len(small.graph.nodes) == 3 + len(inputs) - 1 and len(inputs) <= 2


def test_a_graph_that_does_not_fail():
    x = torch.randn(3)
    with pytest.raises(RuntimeError, match="did not fail"):
        minifier(make_fx(torch.sin)(x), [x], calls(aten.mul.Tensor))
