"""Traced models: fused, with observers, and on the grids of integers."""

import contextlib
from importlib import import_module

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.ao import quantization as ours
from rushlight.ao.nn import intrinsic
from rushlight.ao.quantization import quantize_fx
from rushlight.ao.quantization.backend_config import (
    BackendConfig,
    BackendPatternConfig,
    DTypeConfig,
    DTypeWithConstraints,
    ObservationType,
    get_native_backend_config,
)
from rushlight.ao.quantization.fx.custom_config import ConvertCustomConfig, PrepareCustomConfig


def _model(library):
    n = library.nn

    class Net(n.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = n.Conv2d(3, 4, 3), n.BatchNorm2d(4)
            self.plain = n.Conv2d(4, 4, 3, padding=1, bias=False)
            self.pool = n.MaxPool2d(2)
            self.head = n.Sequential(n.Linear(16, 6), n.ReLU(), n.Linear(6, 5))
            self.gate, self.swish = n.Sigmoid(), n.Hardswish()
            self.weight = n.Parameter(library.ones(5, 5))

        def forward(self, x):
            x = n.functional.relu(self.bn(self.conv(x)))
            x = self.pool(library.relu(self.plain(x) + x))
            x = self.gate(self.swish(self.head(library.flatten(x, 1))))
            return n.functional.linear(x, self.weight)

    return Net()


def _samples():
    return [np.random.RandomState(seed).randn(4, 3, 6, 6).astype("f4") for seed in range(3)]


def _run(library, package, module, start, kind):
    model = _model(library)
    model.load_state_dict({name: library.from_numpy(value.copy()) for name, value in start.items()})
    train = kind == "train"
    model.train(train)
    mapping = {
        "default": lambda: package.get_default_qconfig_mapping("x86"),
        "train": lambda: package.get_default_qat_qconfig_mapping("x86"),
        "names": lambda: (
            package.get_default_qconfig_mapping("qnnpack")
            .set_module_name("head.0", None)
            .set_module_name_regex("pla.*", None)
        ),
        "dynamic": lambda: package.QConfigMapping().set_global(package.default_dynamic_qconfig),
    }[kind]()
    samples = [library.from_numpy(sample) for sample in _samples()]
    prepare = module.prepare_qat_fx if train else module.prepare_fx
    prepared = prepare(model, mapping, (samples[0],))
    names, state = [node.name for node in prepared.graph.nodes], list(prepared.state_dict())
    for sample in samples:
        prepared(sample)
    prepared.eval()
    watched = prepared(samples[0]).detach().numpy()
    converted = module._convert_to_reference_decomposed_fx(prepared)
    return names, state, watched, converted(samples[0]).detach().numpy(), len(converted.graph.nodes)


@pytest.mark.parametrize("kind", "default names dynamic train".split())
def test_graphs_and_numbers_are_pytorchs(kind):
    torch = pytest.importorskip("torch")
    import torch.ao.quantization.quantize_fx as theirs

    torch.manual_seed(0)
    model = _model(torch)
    with torch.no_grad():
        model.weight.normal_()
    start = {name: value.numpy() for name, value in model.state_dict().items()}
    expected = _run(torch, torch.ao.quantization, theirs, start, kind)
    found = _run(rushlight, ours, quantize_fx, start, kind)
    assert found[:2] == expected[:2]
    np.testing.assert_allclose(found[2], expected[2], atol=2e-6)
    np.testing.assert_allclose(found[3], expected[3], atol=2e-6)
    assert found[4] == expected[4]


def test_converted_graphs_lie_on_grids():
    rushlight.manual_seed(0)
    model = _model(rushlight).eval()
    samples = [rushlight.from_numpy(sample) for sample in _samples()]
    expected = model(samples[0])
    prepared = quantize_fx.prepare_fx(model, ours.get_default_qconfig_mapping(), (samples[0],))
    with pytest.raises(AssertionError, match="produced by prepare_fx"):
        quantize_fx.convert_fx(quantize_fx.fuse_fx(_model(rushlight).eval()))
    for sample in samples:
        prepared(sample)
    converted = quantize_fx.convert_to_reference_fx(prepared)
    assert not any("activation_post_process" in name for name, _ in converted.named_modules())
    result = converted(samples[0])
    assert 0 < (result - expected).abs().max() < 0.1 * expected.abs().max()
    assert len(converted.conv[0].get_weight()[0].unique()) < 256


def test_fused_graphs_compute_the_same():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
    fused = quantize_fx.fuse_fx(model)
    assert [type(m) for m in fused.modules() if isinstance(m, intrinsic.ConvReLU2d)]
    x = rushlight.randn(1, 3, 5, 5)
    assert rushlight.allclose(fused(x), model(x), atol=1e-5)


def test_attributes_and_configurations_are_kept():
    model = _model(rushlight).eval()
    model.note = "mine"
    custom = PrepareCustomConfig().set_preserved_attributes(["note"])
    mapping = ours.get_default_qconfig_mapping()
    prepared = quantize_fx.prepare_fx(model, mapping, (rushlight.randn(1, 3, 6, 6),), custom)
    assert prepared.note == "mine"
    prepared(rushlight.randn(1, 3, 6, 6))
    assert quantize_fx.convert_fx(prepared).note == "mine"
    assert PrepareCustomConfig.from_dict(custom.to_dict()).to_dict() == custom.to_dict()


def test_engines_go_to_dictionaries_and_back():
    config = get_native_backend_config()
    again = BackendConfig.from_dict(config.to_dict())
    assert [c.pattern for c in again.configs] == [c.pattern for c in config.configs]
    pytest.importorskip("torch")
    import_module("torch.ao.quantization.quantize_fx")  # which loads what its configurations need
    from torch.ao.quantization.backend_config import get_native_backend_config as theirs

    def names(pattern):
        if isinstance(pattern, tuple):
            return tuple(names(part) for part in pattern)
        return pattern if isinstance(pattern, str) else getattr(pattern, "__name__", str(pattern))

    def table(config):
        return sorted(
            (
                str(names(c.pattern if c.pattern is not None else c._pattern_complex_format)),
                c.observation_type.name,
            )
            for c in config.configs
        )

    assert table(config) == table(theirs())


def test_parts_with_other_configurations_do_not_fuse():
    mapping = ours.QConfigMapping().set_object_type(nn.Linear, ours.default_dynamic_qconfig)
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).eval()
    with pytest.raises(LookupError, match="same qconfigs for all module types"):
        quantize_fx.prepare_fx(model, mapping, (rushlight.randn(1, 2),))


class _Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x)


class _Observed(nn.Module):
    def __init__(self, linear, qconfig):
        super().__init__()
        self.linear, self.qconfig = linear, qconfig

    def forward(self, x):
        return self.linear(x)

    @classmethod
    def from_float(cls, plain):
        return cls(plain.linear, plain.qconfig)


class _OfIntegers(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.linear = linear

    def forward(self, x):
        return self.linear(x)

    @classmethod
    def from_observed(cls, observed):
        observed.linear.activation_post_process = observed.activation_post_process
        return cls(nn.quantized.Linear.from_float(observed.linear))


def _converted(custom, convert=None, mapping=None, model=None):
    rushlight.manual_seed(0)
    model = (nn.Sequential(nn.Linear(3, 3), _Own()) if model is None else model).eval()
    x = rushlight.randn(4, 3)
    prepared = quantize_fx.prepare_fx(model, ours.get_default_qconfig_mapping(), (x,), custom)
    prepared(x)
    return quantize_fx.convert_fx(prepared, convert, qconfig_mapping=mapping), model(x), x


def test_modules_of_the_program_become_those_of_integers():
    custom = PrepareCustomConfig().set_float_to_observed_mapping(_Own, _Observed)
    convert = ConvertCustomConfig().set_observed_to_quantized_mapping(_Observed, _OfIntegers)
    made, expected, x = _converted(custom, convert)
    assert type(made.get_submodule("1")) is _OfIntegers
    assert float((made(x) - expected).abs().max()) < 0.1 * float(expected.abs().max())


class _Again(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = _Own()

    def forward(self, x):
        return self.own(x) + self.own(x)


def test_modules_of_the_program_may_be_called_several_times():
    custom = PrepareCustomConfig().set_float_to_observed_mapping(_Own, _Observed)
    convert = ConvertCustomConfig().set_observed_to_quantized_mapping(_Observed, _OfIntegers)
    made, expected, x = _converted(custom, convert, model=_Again())
    assert type(made.own) is _OfIntegers
    called = [node for node in made.graph.nodes if node.target == "own"]
    users = [user.target for node in called for user in node.users]
    assert users == [rushlight.ops.quantized.add] * 2  # which takes their integers
    assert float((made(x) - expected).abs().max()) < 0.1 * float(expected.abs().max())


def test_integers_go_in_and_come_out():
    custom = PrepareCustomConfig().set_input_quantized_indexes([0]).set_output_quantized_indexes([0])
    made, expected, x = _converted(custom, model=nn.Sequential(nn.Linear(3, 3)))
    result = made(rushlight.quantize_per_tensor(x, 0.05, 128, rushlight.quint8))
    assert result.dtype == rushlight.quint8
    assert float((result.dequantize() - expected).abs().max()) < 0.1 * float(expected.abs().max())


def test_what_a_mapping_for_converting_leaves_out_computes_with_numbers():
    mapping = ours.get_default_qconfig_mapping().set_module_name("1", None)
    made, _, _ = _converted(None, None, mapping, nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)))
    assert type(made.get_submodule("0")) is nn.quantized.Linear
    assert type(made.get_submodule("1")) is nn.Linear


def _observers(graph):
    return [n for n in graph.graph.nodes if n.op == "call_module" and "post_process" in str(n.target)]


def test_engines_refuse_ranges_and_scales():
    """A configuration outside of an engine's bounds leaves numbers, and a warning says why."""
    bounds = DTypeWithConstraints(rushlight.quint8, 0, 31, scale_min_lower_bound=2**-12)
    config = DTypeConfig(bounds, bounds, rushlight.qint8, rushlight.float)
    own = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
    pattern = BackendPatternConfig(nn.Linear).set_observation_type(own).add_dtype_config(config)
    backend = BackendConfig("small").set_backend_pattern_config(pattern)
    model, x = nn.Sequential(nn.Linear(3, 2)).eval(), rushlight.randn(1, 3)
    for more, count, words in (
        ({"quant_min": 0, "quant_max": 31, "eps": 2**-12}, 2, None),
        ({"quant_min": 0, "quant_max": 63, "eps": 2**-12}, 0, "range must fall within"),
        ({"quant_min": 0, "quant_max": 31, "eps": 2**-14}, 0, "min scale"),
    ):
        qconfig = ours.QConfig(ours.MinMaxObserver.with_args(**more), ours.default_weight_observer)
        mapping = ours.QConfigMapping().set_global(qconfig)
        with pytest.warns(UserWarning, match=words) if words else contextlib.nullcontext():
            prepared = quantize_fx.prepare_fx(model, mapping, (x,), backend_config=backend)
        assert len(_observers(prepared)) == count


def test_functions_of_known_range_want_their_scale():
    mapping = ours.QConfigMapping().set_global(ours.default_qconfig)
    with pytest.warns(UserWarning, match="FixedQParams"):
        prepared = quantize_fx.prepare_fx(nn.Sequential(nn.Sigmoid()).eval(), mapping, (rushlight.rand(2),))
    assert not _observers(prepared)


class _Masked(nn.Module):
    def forward(self, x, mask):
        return x.masked_fill(mask.unsqueeze(0).unsqueeze(1), 1)


class _Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 1)

    def forward(self, x):
        return self.conv(rushlight.adaptive_avg_pool1d(self.conv(x), 3))


def test_masks_are_not_watched():
    mapping = ours.QConfigMapping().set_global(ours.default_qconfig)
    inputs = rushlight.rand(1, 2, 3, 4), rushlight.rand(3, 4) > 0.5
    prepared = quantize_fx.prepare_fx(_Masked().eval(), mapping, inputs)
    assert not _observers(prepared)
    rushlight.testing.assert_close(quantize_fx.convert_fx(prepared)(*inputs), _Masked()(*inputs))


def test_a_layer_called_twice():
    x = rushlight.randn(2, 2, 9)
    mapping = ours.QConfigMapping().set_global(ours.default_qconfig)
    model = _Twice().eval()
    prepared = quantize_fx.prepare_fx(model, mapping, (x,))
    prepared(x)
    made = quantize_fx.convert_fx(prepared)
    kinds = [n.target for n in made.graph.nodes if n.op == "call_function"]
    assert kinds.count(rushlight.quantize_per_tensor) == 1
    assert made(x).shape == model(x).shape


def test_inputs_of_integers_need_no_observer():
    mapping = ours.QConfigMapping().set_global(ours.default_qconfig)
    custom = {"input_quantized_idxs": [0]}
    pool = nn.Sequential(nn.AvgPool2d(3)).eval()
    with pytest.warns(FutureWarning):
        prepared = quantize_fx.prepare_fx(pool, mapping, (rushlight.rand(1, 1, 3, 3),), custom)
    assert [n.args[0].op for n in _observers(prepared)] == ["call_module"]


@pytest.mark.parametrize("parts", [[nn.LeakyReLU(0.1)], [nn.Tanh()], [nn.BatchNorm1d(4), nn.LeakyReLU(0.1)]])
def test_linear_layers_of_onednn(parts):
    from rushlight.ao.quantization.backend_config import get_onednn_backend_config

    backend, x = get_onednn_backend_config(), rushlight.randn(8, 3)
    model = nn.Sequential(nn.Linear(3, 4), *parts).eval()
    mapping = ours.QConfigMapping().set_global(ours.get_default_qconfig("onednn"))
    prepared = quantize_fx.prepare_fx(model, mapping, (x,), backend_config=backend)
    prepared(x)
    made = quantize_fx.convert_fx(prepared, backend_config=backend)
    layers = [type(m).__name__ for m in made.modules()]
    assert {"LinearLeakyReLU", "LinearTanh"} & set(layers) and "Tanh" not in layers
    rushlight.testing.assert_close(made(x), model(x), rtol=0, atol=0.1)
