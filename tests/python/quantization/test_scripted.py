"""Scripts of models of integers: they go to files and come back, and give the model's numbers."""

import io
import warnings

import pytest

import rushlight
from rushlight import nn
from rushlight.ao import quantization
from rushlight.ao.nn import intrinsic
from rushlight.ao.quantization import quantize_fx


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


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_layers(kind):
    model = quantization.quantize_dynamic(nn.Sequential(getattr(nn, kind)(4, 3)), {getattr(nn, kind)})
    x = rushlight.randn(5, 2, 4)
    found, expected = again(model)(x), model(x)
    assert rushlight.equal(found[0], expected[0])
    states = ((found[1],), (expected[1],)) if kind == "GRU" else (found[1], expected[1])
    assert all(rushlight.equal(one, other) for one, other in zip(*states))


def test_graphs_of_integers():
    x = rushlight.randn(4, 3)
    prepared = quantize_fx.prepare_fx(
        nn.Sequential(nn.Linear(3, 3)).eval(), quantization.get_default_qconfig_mapping(), (x,)
    )
    prepared(x)
    model = quantize_fx.convert_fx(prepared)
    assert rushlight.equal(again(model)(x), model(x))


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


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_archives_of_pytorch(torch, kind):
    torch.manual_seed(0)
    ao, layers = torch.ao.quantization, torch.nn
    if kind == "dynamic":
        model = ao.quantize_dynamic(layers.Sequential(layers.Linear(6, 3)), {layers.Linear})
    else:
        model = layers.Sequential(ao.QuantStub(), layers.Conv2d(4, 8, 3), layers.ReLU(), ao.DeQuantStub())
        model = ao.fuse_modules(model.eval(), [["1", "2"]])
        model.qconfig = ao.get_default_qconfig("x86")
        prepared = ao.prepare(model)
        prepared(torch.randn(2, 4, 6, 6))
        model = ao.convert(prepared)
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(model), file)
    file.seek(0)
    x = torch.randn(2, 4, 6, 6)
    found = rushlight.jit.load(file)(rushlight.from_numpy(x.numpy()))
    assert (found.numpy() == model(x).numpy()).all()


def test_filters_of_older_programs():
    w = rushlight.quantize_per_tensor(rushlight.randn(8, 4, 3, 3), 0.01, 0, rushlight.qint8)
    x = rushlight.quantize_per_tensor(rushlight.randn(1, 4, 6, 6), 0.02, 99, rushlight.quint8)
    packed = rushlight.ops.quantized.conv2d_prepack(w, None, [2, 2], [1, 1], [1, 1], 1)
    expected = rushlight.ops.quantized.conv2d(x, packed, 0.1, 50)
    name = packed._type()
    pairs = [[rushlight.tensor([n]) for n in part] for part in ((2, 2), (1, 1), (1, 1))]
    for state in (
        (w, None, *pairs, rushlight.tensor([1])),
        (3, [2, 2, 2, 1, 1, 1, 1, 0, 0, 1, 0], [None, w, None]),
    ):
        made = rushlight.ScriptObject(packed._held)
        made.__setstate__((state, name))
        assert rushlight.equal(rushlight.ops.quantized.conv2d(x, made, 0.1, 50), expected)
    with pytest.raises(RuntimeError, match="version '9' are unknown"):
        rushlight.ScriptObject(packed._held).__setstate__((("9", [], []), name))


@pytest.mark.parametrize(
    "kind", ["MinMaxObserver", "MovingAverageMinMaxObserver", "PerChannelMinMaxObserver"]
)
def test_observers_in_scripts_and_files_find_the_scale(kind):
    observer = getattr(quantization, kind)()
    loaded = again(observer)
    x = rushlight.randn(3, 4)
    observer(x), loaded(x)
    for found, expected in zip(loaded.calculate_qparams(), observer.calculate_qparams(), strict=True):
        assert rushlight.equal(found, expected)


def test_a_recording_observer_in_a_script_keeps_what_passed():
    loaded = again(quantization.RecordingObserver())
    x = rushlight.randn(3)
    assert rushlight.equal(loaded(x), x) and rushlight.equal(loaded.get_tensor_value()[0], x)


def traced_again(model, *inputs):
    file = io.BytesIO()
    rushlight.jit.save(rushlight.jit.trace(model, inputs), file)
    file.seek(0)
    return rushlight.jit.load(file)


def test_a_trace_follows_the_scale_of_its_operand():
    """The scale of the example must not become a constant."""

    def quantized(scale, zero_point):
        return rushlight.quantize_per_tensor(rushlight.randn(2, 4, 5, 5), scale, zero_point, rushlight.quint8)

    layer = nn.Conv2d(4, 8, 3)
    conv = calibrated(layer, rushlight.randn(2, 4, 5, 5))[1]
    loaded = traced_again(conv, quantized(0.05, 100))
    other = quantized(0.02, 30)
    assert rushlight.equal(loaded(other), conv(other))
    added = intrinsic.quantized.ConvAdd2d(4, 4, 3, padding=1)
    added.scale = 0.1
    loaded = traced_again(added, quantized(0.05, 100), quantized(0.04, 90))
    assert rushlight.equal(loaded(other, other), added(other, other))


def test_a_traced_dynamic_layer_keeps_its_packed_weight():
    model = quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 3)), {nn.Linear})
    x = rushlight.randn(2, 4)
    assert rushlight.equal(traced_again(model, x)(10 * x), model(10 * x))


def test_attention_of_integers_is_scripted():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True)

        def forward(self, x):
            return self.layer(x, x, x)

    model = Attention().eval()
    model.qconfig = quantization.get_default_qconfig("x86")
    x = rushlight.randn(3, 2, 4)
    prepared = quantization.prepare(model)
    prepared(x)
    model = quantization.convert(prepared)
    assert not any("in_proj" in name for name in model.state_dict())
    q = rushlight.quantize_per_tensor(x, 0.02, 128, rushlight.quint8)
    for found, expected in zip(rushlight.jit.script(model)(q), model(q), strict=True):
        assert rushlight.equal(found, expected)


def test_functional_modules_are_scripted():
    class Sums(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = nn.quantized.FloatFunctional()

        def forward(self, x):
            return self.f.cat([self.f.add_scalar(x, 0.5), self.f.mul_scalar(x, 2.0)], dim=1)

    x = rushlight.randn(2, 3)
    model = Sums()
    assert rushlight.equal(again(model)(x), model(x))


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_traced_recurrent_layers_take_any_length(kind):
    layer = nn.Sequential(getattr(nn, kind)(4, 3, num_layers=2, bidirectional=True))
    model = quantization.quantize_dynamic(layer, {getattr(nn, kind)})
    loaded = traced_again(model, rushlight.randn(5, 2, 4))
    x = rushlight.randn(7, 2, 4)
    assert rushlight.equal(loaded(x)[0], model(x)[0])
