"""Graphs of torch.compile in which small products become one: results but for rounding, and fewer of them."""

import copy

import pytest
from compile_checks import compiled_of, no_measuring  # noqa: F401 - a fixture

import rushlight as torch
from rushlight._dynamo._capture import capture
from rushlight._inductor import config
from rushlight._inductor._optimize import optimize
from rushlight._inductor._passes import remove_dead

nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.usefixtures("no_measuring")


class Unrolled(nn.Module):
    """A recurrent network whose steps are a loop of the program."""

    def __init__(self, cell=nn.LSTMCell):
        super().__init__()
        self.embedding, self.cell, self.out = nn.Embedding(12, 8), cell(8, 16), nn.Linear(16, 12)

    def forward(self, tokens):
        h = torch.zeros(tokens.shape[0], 16)
        state, outs = (h, h) if isinstance(self.cell, nn.LSTMCell) else h, []
        for t in range(tokens.shape[1]):
            state = self.cell(self.embedding(tokens[:, t]), state)
            outs.append(self.out(state[0] if isinstance(state, tuple) else state))
        return torch.stack(outs, 1)


def calls(graph, name):
    return sum(getattr(n.target, "_opname", None) == name for n in graph.nodes)


def optimized(function, *args):
    with torch.no_grad():
        graph = capture(function, args, {}).module.graph
        remove_dead(graph)
        with config.patch(pack_products=False):  # which gives products another name
            optimize(graph)
        graph.lint()
    return graph


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_unrolled_networks(cell):
    torch.manual_seed(0)
    model = Unrolled(cell)
    twin, tokens = copy.deepcopy(model), torch.randint(0, 12, (5, 7))
    fast, found = torch.compile(model), []
    for m, run in ((model, fast), (twin, twin)):
        for _ in range(2):
            m.zero_grad()
            y = run(tokens)
            F.cross_entropy(y.reshape(-1, 12), tokens.reshape(-1)).backward()
        found.append([y, *(p.grad for p in m.parameters())])
    assert found[0][0].grad_fn.name() == "CompiledFunctionBackward"
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-6)


def test_only_independent_products_become_one():
    layer = nn.Linear(6, 6)

    def chain(x):
        for _ in range(6):
            x = layer(x)
        return x

    def siblings(*xs):
        return [layer(layer(x)) for x in xs]

    x = torch.randn(3, 6)
    graph = optimized(chain, x)
    assert calls(graph, "addmm") + calls(graph, "linear") == 6
    xs = [torch.randn(n, 6) for n in (1, 2, 3, 4)]
    assert calls(optimized(siblings, *xs), "linear") == 2
    with torch.no_grad():
        for got, expected in zip(torch.compile(siblings)(*xs), siblings(*xs)):
            torch.testing.assert_close(got, expected)


def test_products_in_two_orders():
    """a -> b and b -> a: batches of both would depend on each other."""
    torch.manual_seed(0)
    a, b = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)

    def f(*xs):
        first = [a(b(x)) for x in xs[:4]]
        return first + [b(a(x)) for x in xs[4:]]

    xs = [torch.randn(2, 4, requires_grad=True) for _ in range(8)]
    fast = torch.compile(f)
    torch.testing.assert_close(fast(*xs), f(*xs))
    found = [
        torch.autograd.grad(sum(y.square().sum() for y in g(*xs)), (*xs, a.weight, b.weight))
        for g in (fast, f)
    ]
    torch.testing.assert_close(*found)


def test_effects_and_the_setting_keep_products_apart(monkeypatch):
    torch.manual_seed(0)
    model = Unrolled()
    twin, tokens = copy.deepcopy(model), torch.randint(0, 12, (5, 7))
    monkeypatch.setattr(config, "batch_products", False)
    fast, found = torch.compile(model), []
    for m, run in ((model, fast), (twin, twin)):
        y = run(tokens)
        y.square().sum().backward()
        found.append([y, *(p.grad for p in m.parameters())])
    assert all(torch.equal(p, q) for p, q in zip(*found)) and compiled_of(fast).reason is None


def test_views_that_are_written_to_or_turned_in_place():
    def f(x):
        x = x + 1
        a, b = x.t(), x.t()
        a[0] = 5
        c = x.t()
        c.t_()
        return a, b, c, x.t().t().mul(2)

    fast = torch.compile(f)
    for _ in range(2):
        x = torch.randn(3, 4)
        with torch.no_grad():
            for got, expected in zip(fast(x), f(x)):
                assert torch.equal(got, expected)
