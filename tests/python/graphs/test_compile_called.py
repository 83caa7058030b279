"""Graphs of programs that call modules with other parameters, and programs that were exported."""

import copy

import pytest
from compile_checks import compiled_of, graphs, no_measuring  # noqa: F401 - a fixture

import rushlight as torch
from rushlight import nn

pytestmark = pytest.mark.usefixtures("no_measuring")
functional_call = torch.func.functional_call


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.b(self.a(x).tanh()))


def same(program, fast, model, *args):
    """The program gives, and does to the model and its arguments, what it does compiled."""
    before, states, results, given = copy.deepcopy(model.state_dict()), [], [], []
    for run in (program, fast):
        model.load_state_dict(before)
        mine = copy.deepcopy(args)
        results.append(run(*mine).detach())
        states.append(copy.deepcopy(model.state_dict()))
        given.append(mine)
    torch.testing.assert_close(*results, rtol=0, atol=0)
    torch.testing.assert_close(*states, rtol=0, atol=0)
    torch.testing.assert_close(*given, rtol=0, atol=0)


def test_other_parameters():
    model, x = Net(), torch.randn(6, 4)
    own = [*model.parameters()]

    def f(parameters, x):
        return functional_call(model, parameters, (x,))

    fast = torch.compile(f)
    mine = {k: (v * 2).detach().requires_grad_() for k, v in model.named_parameters()}
    for _ in range(2):
        same(f, fast, model, mine, x)
    assert graphs(fast) == 1 and all(a is b for a, b in zip(model.parameters(), own))
    same(f, fast, model, {"a.weight": mine["a.weight"]}, x)
    model.b.weight = model.a.weight  # now one is given for both
    same(f, fast, model, {"a.weight": mine["a.weight"]}, x)
    assert graphs(fast) == 3, compiled_of(fast).reason
    with pytest.raises(ValueError, match="tied"):
        fast(mine, x)


def test_gradients_of_other_parameters():
    model, x = Net(), torch.randn(6, 4)

    def f(parameters, buffers, x):
        return functional_call(model, (parameters, buffers), (x,))

    fast = torch.compile(f)
    parameters = {k: v.detach().requires_grad_() for k, v in model.named_parameters()}
    buffers = {k: v.clone() for k, v in model.named_buffers()}
    for _ in range(3):
        same(f, fast, model, parameters, buffers, x)
        found = []
        for run in (f, fast):
            result = run(parameters, copy.deepcopy(buffers), x).square().sum()
            found.append(torch.autograd.grad(result, [*parameters.values()]))
        torch.testing.assert_close(*found)
    assert graphs(fast) == 1, compiled_of(fast).reason


def test_exported_programs():
    layers = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    x = torch.randn(70, 4)
    sizes = ({0: torch.export.Dim("batch", min=2, max=64)},)
    module = torch.export.export(layers, (x[:5],), dynamic_shapes=sizes).module()
    fast = torch.compile(module)
    for size in (5, 6, 7, 64):
        torch.testing.assert_close(fast(x[:size]), module(x[:size]), rtol=0, atol=0)
    assert graphs(fast) == 2, compiled_of(fast).reason  # the second one has any size
    with pytest.raises(AssertionError, match="<= 64"):
        fast(x)
    assert fast(x[:5]).grad_fn.name() == "CompiledFunctionBackward"


def test_exported_programs_of_nested_inputs():
    class Nested(nn.Module):
        def forward(self, pair, *, scale):
            return {"sum": (pair[0] + pair[1]["y"]) * scale, "difference": pair[0] - pair[1]["y"]}

    args, kwargs = ((torch.randn(3), {"y": torch.randn(3)}),), {"scale": torch.randn(3)}
    module = torch.export.export(Nested(), args, kwargs).module()
    fast = torch.compile(module)
    for _ in range(2):
        torch.testing.assert_close(fast(*args, **kwargs), module(*args, **kwargs), rtol=0, atol=0)
    assert graphs(fast) == 1, compiled_of(fast).reason
