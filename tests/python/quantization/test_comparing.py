"""Comparing models of integers and of numbers, equal ranges of weights, corrected biases, learned scales."""

import copy

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.ao import quantization
from rushlight.ao.ns import _numeric_suite as ns
from rushlight.ao.quantization._correct_bias import bias_correction
from rushlight.ao.quantization._equalize import channel_range, converged, equalize
from rushlight.ao.quantization._learnable_fake_quantize import _LearnableFakeQuantize


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv1, self.conv2 = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 4, 3)

    def forward(self, x):
        return self.dequant(self.conv2(self.conv1(self.quant(x))))


def models():
    rushlight.manual_seed(0)
    plain = Network().eval()
    plain.qconfig = quantization.get_default_qconfig("x86")
    x = rushlight.randn(2, 3, 8, 8)
    prepared = quantization.prepare(plain)
    prepared(x)
    return plain, quantization.convert(prepared), x


def near(a, b):
    return float((a - b).abs().max()) < 0.1 * float(a.abs().max())


def test_weights_and_results_by_name():
    plain, made, x = models()
    weights = ns.compare_weights(plain.state_dict(), made.state_dict())
    assert set(weights) == {"conv1.weight", "conv2.weight"}
    assert all(near(w["float"], w["quantized"].dequantize()) for w in weights.values())
    results = ns.compare_model_outputs(copy.deepcopy(plain), copy.deepcopy(made), x)
    assert {"conv1.stats", "conv2.stats"} <= set(results)
    for name in ("conv1.stats", "conv2.stats"):
        assert near(results[name]["float"][0], results[name]["quantized"][0].dequantize())
    shadows = ns.compare_model_stub(plain, made, [nn.Conv2d], x)
    assert set(shadows) == {"conv1.stats", "conv2.stats"}
    for stats in shadows.values():
        assert near(stats["float"][0], stats["quantized"][0].dequantize())


def test_equal_ranges_compute_the_same():
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.Conv2d(6, 4, 3))
    with rushlight.no_grad():
        model[0].weight[2] *= 50
    x = rushlight.randn(2, 3, 8, 8)
    made = equalize(model, [["0", "1"]], 1e-4, inplace=False)
    assert rushlight.allclose(made(x), model(x), atol=1e-4)
    assert rushlight.allclose(channel_range(made[0].weight), channel_range(made[1].weight, 1), rtol=1e-3)
    with pytest.raises(ValueError, match="same set of names"):
        converged({"a": made[0]}, {})


def test_corrected_biases_lower_the_mean_error():
    plain, made, x = models()
    with rushlight.no_grad():
        made.conv2.bias().add_(0.3)
    before = (made(x) - plain(x)).mean([0, 2, 3]).abs().max()
    bias_correction(plain, made, [(x,)], neval_batches=1)
    after = (made(x) - plain(x)).mean([0, 2, 3]).abs().max()
    assert after < 0.3 * before


@pytest.mark.parametrize("observer", ["MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver"])
def test_learned_scales(observer):
    count = 4 if "Channel" in observer else -1
    more = {"ch_axis": 0} if count > 0 else {}
    rounding = _LearnableFakeQuantize(
        getattr(quantization, observer), 0, 255, channel_len=count, use_grad_scaling=True, **more
    )
    x = rushlight.randn(4, 10)
    rounding.enable_static_estimate()
    assert float((rounding(x) - x).abs().max()) <= float(rounding.calculate_qparams()[0].max())
    rounding.enable_param_learning()
    (rounding(x) ** 2).sum().backward()
    assert np.all(rounding.scale.grad.numpy() != 0)
    with pytest.raises(AssertionError, match="out of bound"):
        _LearnableFakeQuantize(quantization.MinMaxObserver, 0, 256)
