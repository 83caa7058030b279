"""Layers that lose rows (`torch.ao.pruning._experimental.pruner`): smaller layers' results are PyTorch's."""

import copy
import importlib

import numpy as np
import pytest

import rushlight

HOME = ".ao.pruning._experimental.pruner"


def pruner_of(library):
    return importlib.import_module(library.__name__ + HOME)


def fill(library, net):
    with library.no_grad():
        for number, weight in enumerate(net.parameters()):
            values = np.random.default_rng(number).standard_normal(tuple(weight.shape)).astype(np.float32)
            weight.copy_(library.from_numpy(values))
    return net.eval()


def _first_of(library, layers):
    n = library.nn

    class Net(n.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.rest = layers[0], n.Sequential(*layers[1:])

        def forward(self, x):
            return self.rest(self.lstm(x)[0])

    return Net()


NETS = {
    "linear": (lambda n: [n.Linear(6, 8), n.ReLU(), n.Linear(8, 7), n.Linear(7, 3)], (2, 6)),
    "linear without bias": (lambda n: [n.Linear(6, 8, bias=False), n.Linear(8, 3, bias=False)], (2, 6)),
    "conv": (lambda n: [n.Conv2d(2, 6, 3), n.ReLU(), n.Conv2d(6, 5, 3), n.Conv2d(5, 4, 1)], (2, 2, 7, 7)),
    "padded conv": (lambda n: [n.Conv2d(2, 6, 3), n.Tanh(), n.Conv2d(6, 5, 3, padding=1)], (2, 2, 7, 7)),
    "padded conv without bias": (
        lambda n: [n.Conv2d(2, 6, 3, bias=False), n.Conv2d(6, 5, 3, padding=1, bias=False)],
        (2, 2, 7, 7),
    ),
    "pools": (
        lambda n: [
            *(n.Conv2d(2, 6, 3), n.ReLU(), n.MaxPool2d(2), n.Conv2d(6, 5, 2), n.AvgPool2d(2), n.Sigmoid()),
            *(n.Conv2d(5, 4, 1), n.AdaptiveAvgPool2d((2, 1)), n.Flatten(), n.Linear(8, 3)),
        ],
        (2, 2, 12, 12),
    ),
}


def config_of(net, prune_bias):
    names = [name for name, _ in net.named_parameters() if name.endswith("weight")]
    return [{"tensor_fqn": name, "sparsity_level": 0.4, "prune_bias": prune_bias} for name in names[:-1]]


def pruned(library, net, kind, config):
    sparsifier = getattr(pruner_of(library), kind)(**({} if kind == "FPGMPruner" else {"defaults": {}}))
    sparsifier.prepare(net, config)
    sparsifier.step()
    return sparsifier.prune()


@pytest.mark.parametrize("kind", ["SaliencyPruner", "FPGMPruner"])
@pytest.mark.parametrize("prune_bias", [True, False])
@pytest.mark.parametrize("name", NETS)
def test_smaller_layers_are_pytorchs(torch, name, prune_bias, kind):
    make, shape = NETS[name]
    x = np.random.default_rng(9).standard_normal(shape).astype(np.float32)
    shapes, results = [], []
    for library in (rushlight, torch):
        net = fill(library, library.nn.Sequential(*make(library.nn)))
        small = pruned(library, net, kind, config_of(net, prune_bias))
        shapes.append({key: tuple(value.shape) for key, value in small.state_dict().items()})
        results.append(np.asarray(small(library.from_numpy(x)).detach()))
    assert shapes[0] == shapes[1]
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["linear", "conv", "pools"])
def test_constants_go_to_the_next_layer(name):
    """A row whose weights are zero is a constant: without it nothing changes, but for its bias."""
    make, shape = NETS[name]
    if name == "pools":  # a maximum or a mean of constants is that constant
        make, shape = (lambda n: NETS["pools"][0](n)[:4]), (2, 2, 8, 8)
    net = fill(rushlight, rushlight.nn.Sequential(*make(rushlight.nn)))
    with rushlight.no_grad():
        net[0].weight[::2] = 0
    x = rushlight.randn(shape)
    expected = net(x)
    config = [{"tensor_fqn": "0.weight", "sparsity_level": 0.5, "prune_bias": False}]
    small = pruned(rushlight, net, "SaliencyPruner", config)
    first, second = [module.weight for module in small.children() if hasattr(module, "weight")][:2]
    assert len(first) * 2 == (8 if name == "linear" else 6) and second.shape[1] == len(first)
    rushlight.testing.assert_close(small(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_smaller_recurrent_layers_are_pytorchs(torch, layers, normalised):
    x = np.random.default_rng(9).standard_normal((3, 2, 5)).astype(np.float32)
    shapes, results = [], []
    for library in (rushlight, torch):
        n = library.nn
        parts = [n.LSTM(5, 6, layers), *([n.LayerNorm(6)] if normalised else []), n.Linear(6, 3)]
        net = fill(library, _first_of(library, parts))
        names = [name for name, _ in net.lstm.named_parameters() if name.startswith("weight")]
        config = [{"tensor_fqn": f"lstm.{name}", "sparsity_level": 0.5} for name in names]
        small = pruned(library, net, "LSTMSaliencyPruner", config)
        shapes.append({key: tuple(value.shape) for key, value in small.state_dict().items()})
        results.append(np.asarray(small(library.from_numpy(x)).detach()))
    assert shapes[0] == shapes[1] and shapes[0]["lstm.weight_hh_l0"] == (12, 3)
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5)


def test_training_under_masks():
    net = fill(rushlight, rushlight.nn.Sequential(rushlight.nn.Linear(4, 6), rushlight.nn.Linear(6, 2)))
    sparsifier = pruner_of(rushlight).SaliencyPruner({"sparsity_level": 0.5})
    sparsifier.prepare(net, [{"tensor_fqn": "0.weight"}])
    sparsifier.step()
    x = rushlight.randn(3, 4)
    net(x).sum().backward()
    mask = net[0].parametrizations.weight[0].mask
    gradient = net[0].parametrizations.weight.original.grad
    assert not gradient[~mask].any() and gradient[mask].any()
    expected = net(x)
    small = sparsifier.prune()
    first, second = small.children()
    assert first.out_features == 3 and second.in_features == 3
    rushlight.testing.assert_close(small(x), expected)


def test_what_is_not_known_is_an_error():
    net = rushlight.nn.Sequential(rushlight.nn.Linear(4, 6), rushlight.nn.LayerNorm(6))
    with pytest.raises(Exception, match="still contains FakeStructuredSparsity"):
        pruned(rushlight, net, "SaliencyPruner", [{"tensor_fqn": "0.weight", "sparsity_level": 0.5}])
    with pytest.raises(Exception, match="2.dim weight tensor"):
        pruned(
            rushlight,
            copy.deepcopy(rushlight.nn.Sequential(rushlight.nn.LayerNorm(6))),
            "SaliencyPruner",
            [{"tensor_fqn": "0.weight", "sparsity_level": 0.5}],
        )
