"""Equalisation of inputs and weights before rounding."""

import copy

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.ao import quantization as ours
from rushlight.ao.quantization import quantize_fx
from rushlight.ao.quantization.fx import _equalize


def _network(library, functions):
    n, f = library.nn, library.nn.functional

    class Net(n.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.first, self.second = n.Conv2d(2, 3, 3), n.Linear(27, 6), n.Linear(6, 4)

        def forward(self, x):
            x = self.conv(x).flatten(1)
            if functions:
                x = f.relu(f.linear(x, self.first.weight, self.first.bias))
                return f.linear(x, self.second.weight, self.second.bias)
            return self.second(f.relu(self.first(x)))

    return Net().eval()


def _configs(library, module):
    kinds = [library.nn.Linear, library.nn.Conv2d, library.nn.ReLU, library.nn.functional.linear]
    kinds += [library.nn.functional.relu]
    return {"": None, "object_type": [(kind, module.default_equalization_qconfig) for kind in kinds]}


def test_scales_weights_and_results_are_pytorchs():
    torch = pytest.importorskip("torch")
    from torch.ao.quantization import default_qconfig
    from torch.ao.quantization import quantize_fx as theirs
    from torch.ao.quantization.fx import _equalize as their_equalize

    torch.manual_seed(0)
    start = {name: value.numpy() for name, value in _network(torch, False).state_dict().items()}
    x = np.random.RandomState(0).rand(8, 2, 5, 5).astype("f4") * np.array([1, 50], "f4").reshape(2, 1, 1)
    results = []
    for library, package, module, qconfig in (
        (torch, theirs, their_equalize, default_qconfig),
        (rushlight, quantize_fx, _equalize, ours.default_qconfig),
    ):
        model = _network(library, False)
        model.load_state_dict({name: library.from_numpy(value.copy()) for name, value in start.items()})
        sample = library.from_numpy(x)
        prepared = package.prepare_fx(
            model, {"": qconfig}, (sample,), _equalization_config=_configs(library, module)
        )
        wanted = prepared(sample)
        reference = module._convert_equalization_ref(prepared)
        np.testing.assert_allclose(
            reference(sample).detach().numpy(), wanted.detach().numpy(), rtol=1e-3, atol=1e-4
        )
        scales = [
            reference.get_buffer(node.target).numpy().ravel()
            for node in reference.graph.nodes
            if node.op == "get_attr" and "equalization_scale" in node.name
        ]
        results.append((scales, [p.detach().numpy() for p in reference.parameters()]))
    (theirs_scales, theirs_weights), (scales, weights) = results
    assert len(scales) == len(theirs_scales) == 2  # before the convolution, and behind flatten
    for one, two in zip(scales + weights, theirs_scales + theirs_weights):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


def test_weights_of_functions_are_scaled_too():
    rushlight.manual_seed(0)
    model, x = _network(rushlight, True), rushlight.rand(8, 2, 5, 5)
    config = _configs(rushlight, _equalize)
    prepared = quantize_fx.prepare_fx(model, {"": ours.default_qconfig}, (x,), _equalization_config=config)
    wanted = prepared(x)
    before = prepared.first.weight.clone()
    reference = _equalize._convert_equalization_ref(copy.deepcopy(prepared))
    assert rushlight.allclose(reference(x), wanted, atol=1e-5)
    assert not rushlight.allclose(reference.first.weight, before, rtol=0.1)
    assert (quantize_fx.convert_fx(prepared)(x) - wanted).abs().max() < 0.1 * wanted.abs().max()


def _error(model, x, **more):
    wanted = model(x)
    prepared = quantize_fx.prepare_fx(model, {"": ours.default_qconfig}, (x,), **more)
    prepared(x)
    return float((quantize_fx.convert_fx(prepared)(x) - wanted).abs().max() / wanted.abs().max())


def test_columns_of_unlike_ranges_lose_less():
    rushlight.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)).eval()
    spread = rushlight.logspace(-2, 2, 16)
    x = rushlight.rand(64, 16) * spread
    model[0].weight.data /= spread  # a column's share of the result is alike, its range is not
    plain = _error(model, x)
    equalized = _error(model, x, _equalization_config=_configs(rushlight, _equalize))
    assert equalized < 0.02 < plain / 2


def test_a_layer_that_is_left_out_is_not_scaled_for_the_next():
    rushlight.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 4)).eval(), rushlight.rand(16, 5)
    wanted = model(x)
    only = {"module_name": [("1", _equalize.default_equalization_qconfig)]}
    prepared = quantize_fx.prepare_fx(model, {"": ours.default_qconfig}, (x,), _equalization_config=only)
    prepared(x)
    weight = prepared.get_submodule("0").weight.clone()
    reference = _equalize._convert_equalization_ref(prepared)
    assert rushlight.equal(reference.get_submodule("0").weight, weight)
    assert rushlight.allclose(reference(x), wanted, atol=1e-5)


def test_what_cannot_be_equalised_is_said():
    with pytest.raises(TypeError, match="Input qscheme must be per-tensor"):
        _equalize._InputEqualizationObserver(qscheme=rushlight.per_channel_affine)
    with pytest.raises(ValueError, match="only supports Linear and Conv"):
        _equalize._WeightEqualizationObserver()(rushlight.ones(3))
    with pytest.raises(ValueError, match="observer class"):
        _equalize.EqualizationQConfig(nn.Identity(), nn.Identity)
    x = rushlight.rand(2, 4, 5, 5)
    config = {"": _equalize.default_equalization_qconfig}
    grouped = nn.Sequential(nn.Conv2d(4, 4, 3, groups=2)).eval()
    prepared = quantize_fx.prepare_fx(grouped, {"": ours.default_qconfig}, (x,), _equalization_config=config)
    prepared(x)
    with pytest.raises(ValueError, match="same column dimension.*groups"):
        quantize_fx.convert_fx(prepared)
    unseen = quantize_fx.prepare_fx(
        nn.Sequential(nn.Linear(4, 4)).eval(), {"": ours.default_qconfig}, (x,), _equalization_config=config
    )
    with pytest.warns(UserWarning, match="Must run observer before"):
        quantize_fx.convert_fx(unseen)
