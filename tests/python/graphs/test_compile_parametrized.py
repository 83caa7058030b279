"""Modules whose weights are computed from others, in compiled programs."""

import pytest
from compile_checks import graphs, no_measuring  # noqa: F401 (a fixture)

import rushlight as torch
from rushlight.nn.utils import parametrizations, parametrize, weight_norm

pytestmark = pytest.mark.usefixtures("no_measuring")


class Symmetric(torch.nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T


def symmetric(layer):
    parametrize.register_parametrization(layer, "weight", Symmetric())


def losses(make, compiled):
    torch.manual_seed(0)
    layer = torch.nn.Linear(6, 6)
    make(layer)
    model = torch.nn.Sequential(layer, torch.nn.ReLU(), torch.nn.Linear(6, 2))
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    found = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = run(torch.randn(4, 6)).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    model.eval()
    with torch.no_grad():
        found.append(run(torch.ones(2, 6)))
    return found + [t.clone() for t in model.state_dict().values()], run


@pytest.mark.parametrize(
    "make, count",
    [
        (parametrizations.weight_norm, 2),
        (parametrizations.spectral_norm, 2),
        (parametrizations.orthogonal, 2),
        (symmetric, 2),
        (weight_norm, 1),  # without gradients its hook puts another kind of tensor in the module
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_computed_weights_are_part_of_graphs(make, count):
    (plain, _), (fast, run) = losses(make, False), losses(make, True)
    torch.testing.assert_close(fast, plain, rtol=1e-6, atol=1e-6)
    assert graphs(run) == count


def test_weights_that_are_kept_are_no_graph():
    layer, calls = torch.nn.Linear(3, 3), []

    class Counted(torch.nn.Module):
        def forward(self, x):
            return x * 2

    parametrize.register_parametrization(layer, "weight", Counted())
    fast = torch.compile(lambda x: layer(x) + layer.weight.sum())
    x = torch.ones(2, 3)
    torch.testing.assert_close(fast(x), layer(x) + layer.weight.sum())
    assert graphs(fast) == 1
    layer.parametrizations.weight[0].register_forward_hook(lambda *_: calls.append(1))
    with parametrize.cached():
        fast(x)
        fast(x)
    assert len(calls) == 1
