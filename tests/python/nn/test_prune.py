"""Pruning against PyTorch: masks, stacked methods, removal and refusals."""

import warnings
from importlib import import_module

import pytest

import rushlight

torch = pytest.importorskip("torch")

CALLS = [
    ("identity", "weight", {}),
    ("random_unstructured", "weight", {"amount": 0.4}),
    ("l1_unstructured", "weight", {"amount": 7}),
    ("l1_unstructured", "bias", {"amount": 0.0}),
    ("random_structured", "weight", {"amount": 2, "dim": 0}),
    ("random_structured", "weight", {"amount": 0.5, "dim": -1}),
    ("ln_structured", "weight", {"amount": 1, "n": 2, "dim": 1}),
    ("ln_structured", "weight", {"amount": 0.5, "n": float("inf"), "dim": 0}),
]


def both(program):
    """Runs `program(lib, lib.nn.utils.prune)` in both libraries; what comes back must agree."""
    results = []
    for lib in (rushlight, torch):
        lib.manual_seed(3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            results.append(plain(program(lib, import_module(f"{lib.__name__}.nn.utils.prune"))))
    assert results[0] == results[1]
    return results[0]


def plain(value):
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return round(value, 5) if isinstance(value, float) else value


@pytest.mark.parametrize("name, parameter, options", CALLS)
def test_masks(name, parameter, options):
    def program(lib, prune):
        layer = lib.nn.Conv1d(4, 6, 3)
        assert getattr(prune, name)(layer, parameter, **options) is layer
        assert prune.is_pruned(layer)
        names = [n for n, _ in layer.named_parameters()], [n for n, _ in layer.named_buffers()]
        out = layer(lib.ones(1, 4, 5))
        out.sum().backward()
        grad = getattr(layer, parameter + "_orig").grad
        prune.remove(layer, parameter)
        after = [n for n, _ in layer.named_parameters()]
        assert not prune.is_pruned(layer) and isinstance(getattr(layer, parameter), lib.nn.Parameter)
        return names, out, grad, after, layer.state_dict()

    both(program)


@pytest.mark.parametrize("first", [0, 3, 4, 6])
@pytest.mark.parametrize("second", [1, 2, 4, 7])
def test_methods_in_turn(first, second):
    def program(lib, prune):
        layer = lib.nn.Conv1d(4, 6, 3)
        parameter = "weight"
        for index in (first, second):
            name, _, options = CALLS[index]
            getattr(prune, name)(layer, parameter, **options)
        (hook,) = layer._forward_pre_hooks.values()
        kinds = [type(m).__name__ for m in hook] if len(hook) else []
        assert type(hook).__name__ == "PruningContainer" and len(hook) == 2
        return kinds, layer.weight_mask, layer.weight, layer(lib.ones(1, 4, 5))

    both(program)


def test_global_and_custom():
    def program(lib, prune):
        net = lib.nn.Sequential(lib.nn.Linear(5, 4), lib.nn.Linear(4, 3))
        pairs = [(net[0], "weight"), (net[1], "weight")]
        prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=0.3)
        prune.custom_from_mask(net[0], "bias", mask=lib.tensor([1, 0, 1, 0]))
        scores = lib.arange(12.0).reshape(3, 4)
        prune.l1_unstructured(net[1], "weight", amount=3, importance_scores=scores)
        kept = prune.L1Unstructured(amount=2).prune(lib.tensor([1.0, -5.0, 0.5, 3.0]))
        return net.state_dict(), net(lib.ones(5)), kept

    result = both(program)
    assert result[2] == [0.0, -5.0, 0.0, 3.0]


def test_pruned_modules_load_and_train():
    layer = rushlight.nn.utils.prune.random_unstructured(rushlight.nn.Linear(6, 3), "weight", 0.5)
    other = rushlight.nn.utils.prune.identity(rushlight.nn.Linear(6, 3), "weight")
    other.load_state_dict(layer.state_dict())
    assert rushlight.equal(other.weight_mask, layer.weight_mask)
    optimizer = rushlight.optim.SGD(layer.parameters(), lr=0.1)
    layer(rushlight.ones(6)).sum().backward()
    optimizer.step()
    x = rushlight.ones(6)
    assert rushlight.allclose(layer(x), (layer.weight_orig * layer.weight_mask) @ x + layer.bias)


def refused(act):
    def program(lib, prune):
        try:
            act(lib, prune)
        except Exception as error:
            return [type(error).__name__, str(error).split("Linear(")[0].replace("rushlight", "torch")]
        return "accepted"

    assert both(program) != "accepted"


def test_refusals():
    refused(lambda lib, prune: prune.l1_unstructured(lib.nn.Linear(2, 2), "weight", amount="much"))
    refused(lambda lib, prune: prune.l1_unstructured(lib.nn.Linear(2, 2), "weight", amount=1.5))
    refused(lambda lib, prune: prune.l1_unstructured(lib.nn.Linear(2, 2), "weight", amount=-1))
    refused(lambda lib, prune: prune.l1_unstructured(lib.nn.Linear(2, 2), "weight", amount=5))
    refused(lambda lib, prune: prune.random_structured(lib.nn.Linear(2, 2), "bias", amount=1, dim=0))
    refused(lambda lib, prune: prune.random_structured(lib.nn.Linear(2, 2), "weight", amount=1, dim=2))
    refused(lambda lib, prune: prune.remove(lib.nn.Linear(2, 2), "weight"))
    for method, options in (("LnStructured", {"n": 2}), ("L1Unstructured", {"importance_scores": 3})):
        refused(
            lambda lib, prune, method=method, options=options: prune.global_unstructured(
                [(lib.nn.Linear(2, 2), "weight")], getattr(prune, method), amount=1, **options
            )
        )


def test_a_refused_amount_leaves_the_module_as_it_was():
    layer = rushlight.nn.Linear(2, 2)
    with pytest.raises(ValueError):
        rushlight.nn.utils.prune.l1_unstructured(layer, "weight", amount=5)
    assert [name for name, _ in layer.named_parameters()][0] in ("weight", "bias")
    assert {name for name, _ in layer.named_parameters()} == {"weight", "bias"}
