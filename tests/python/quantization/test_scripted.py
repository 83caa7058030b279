"""Scripts of models of integers: they go to files and come back, and give the model's numbers."""

import io
import warnings

import pytest

import rushlight
from rushlight import nn
from rushlight.ao import quantization
from rushlight.ao.nn import intrinsic


def calibrated(layer, x):
    model = nn.Sequential(quantization.QuantStub(), layer, quantization.DeQuantStub()).eval()
    model.qconfig = quantization.get_default_qconfig("x86")
    prepared = quantization.prepare(model)
    prepared(x)
    return quantization.convert(prepared)


def again(model):
    file = io.BytesIO()
    rushlight.jit.save(rushlight.jit.script(model), file)
    file.seek(0)
    return rushlight.jit.load(file)


STATIC = {
    "linear": lambda: nn.Linear(6, 3),
    "conv2d": lambda: nn.Conv2d(4, 8, 3, padding=1),
    "reflecting": lambda: nn.Conv2d(4, 8, 3, padding=1, padding_mode="reflect"),
    "conv_relu": lambda: intrinsic.ConvReLU2d(nn.Conv2d(4, 8, 3), nn.ReLU()),
    "hardswish": nn.Hardswish,
    "batch_norm": lambda: nn.BatchNorm2d(4),
    "elu": nn.ELU,
}


@pytest.mark.parametrize("kind", sorted(STATIC))
def test_layers_of_integers(kind):
    x = rushlight.randn(2, 4, 6, 6)
    model = calibrated(STATIC[kind](), x)
    assert rushlight.equal(again(model)(x), model(x))


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell", "Linear"])
def test_dynamic_layers(kind):
    layer = nn.Sequential(getattr(nn, kind)(4, 3))
    model = quantization.quantize_dynamic(layer, {getattr(nn, kind)})
    x = rushlight.randn(2, 4)
    found, expected = again(model)(x), model(x)
    if kind == "LSTMCell":
        found, expected = found[0], expected[0]
    assert rushlight.equal(found, expected)


def test_dynamic_convolutions():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.quantized.dynamic.Conv2d(4, 8, 3).eval()
    x = rushlight.randn(2, 4, 6, 6)
    assert rushlight.equal(again(model)(x), model(x))


def test_tables_of_integers():
    model = nn.Sequential(nn.Embedding(5, 4))
    model.qconfig = quantization.float_qparams_weight_only_qconfig
    model = quantization.convert(quantization.prepare(model))
    rows = rushlight.tensor([1, 4])
    assert rushlight.equal(again(model)(rows), model(rows))
