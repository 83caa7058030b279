"""Observers, fake quantisers and configurations, alone and beside PyTorch."""

import copy
import io
import warnings

import numpy as np
import pytest

import rushlight
from rushlight.ao import quantization as ours

warnings.filterwarnings("ignore", message="Please use quant_min")

KINDS = "MinMaxObserver MovingAverageMinMaxObserver HistogramObserver".split()
CHANNEL_KINDS = "PerChannelMinMaxObserver MovingAveragePerChannelMinMaxObserver".split()
DTYPES = "quint8 qint8 qint32 quint4x2 int8 uint8 int16 uint16".split()
RANGES = [{}, {"quant_min": 0, "quant_max": 127}, {"quant_min": -100, "quant_max": 100, "eps": 2**-12}]


def _samples(seed):
    draw = np.random.RandomState(seed)
    return [(draw.randn(4, 50) * scale + shift).astype("f4") for scale, shift in ((1, 0), (5, 0), (0.1, 3))]


def _same(mine, theirs):
    mine = mine.numpy() if hasattr(mine, "numpy") else mine
    assert mine.dtype == theirs.numpy().dtype
    np.testing.assert_array_equal(mine, theirs.numpy())


@pytest.mark.parametrize("kind", KINDS + CHANNEL_KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_scales_are_pytorchs(kind, dtype):
    torch = pytest.importorskip("torch")
    theirs = torch.ao.quantization
    schemes = ["affine", "symmetric"] + (["affine_float_qparams"] if kind in CHANNEL_KINDS else [])
    before = "per_channel_" if kind in CHANNEL_KINDS else "per_tensor_"
    compared = 0
    for scheme in schemes:
        for half in (False, True):
            for seed, limits in enumerate(RANGES):
                found = []
                for library, package in ((rushlight, ours), (torch, theirs)):
                    more = {"bins": 64} if kind == "HistogramObserver" else {}
                    try:
                        observer = getattr(package, kind)(
                            dtype=getattr(library, dtype),
                            qscheme=getattr(library, before + scheme),
                            reduce_range=half,
                            **limits,
                            **more,
                        )
                    except NotImplementedError as error:
                        found.append(str(error))
                        continue
                    for sample in _samples(seed):
                        observer(library.from_numpy(sample))
                    found.append((observer, observer.calculate_qparams()))
                if isinstance(found[1], str):
                    assert found[0] == found[1]
                    continue
                (mine, my_scale), (other, other_scale) = found
                for one, two in zip(my_scale, other_scale):
                    _same(one, two)
                assert list(mine.state_dict()) == list(other.state_dict())
                for name, value in other.state_dict().items():
                    _same(mine.state_dict()[name], value)
                compared += 1
    assert compared >= 8


@pytest.mark.parametrize("kind", KINDS + CHANNEL_KINDS)
def test_states_go_both_ways(kind):
    torch = pytest.importorskip("torch")
    pairs = [(rushlight, ours), (torch, torch.ao.quantization)]
    for (source, source_package), (target, target_package) in (pairs, pairs[::-1]):
        watched = getattr(source_package, kind)()
        for sample in _samples(1):
            watched(source.from_numpy(sample))
        file = io.BytesIO()
        source.save(watched.state_dict(), file)
        file.seek(0)
        fresh = getattr(target_package, kind)()
        fresh.load_state_dict(target.load(file))
        for one, two in zip(fresh.calculate_qparams(), watched.calculate_qparams()):
            np.testing.assert_array_equal(one.numpy(), two.numpy())


def test_a_range_holds_what_was_seen():
    observer = ours.MinMaxObserver(dtype=rushlight.quint8)
    observer(rushlight.tensor([-1.0, 0.0, 3.0]))
    scale, zero = observer.calculate_qparams()
    assert scale.item() == pytest.approx(4 / 255)
    assert zero.item() == 64
    observer.reset_min_max_vals()
    assert observer.min_val.item() == float("inf")


def test_an_observer_that_saw_nothing_says_so():
    with pytest.warns(UserWarning, match="must run observer before calling calculate_qparams"):
        scale, zero = ours.MinMaxObserver().calculate_qparams()
    assert (scale.item(), zero.item()) == (1.0, 0)
    with pytest.warns(UserWarning, match="must run observer"):
        ours.PerChannelMinMaxObserver().calculate_qparams()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"quant_min": 5, "quant_max": 3}, AssertionError, "must include 0"),
        ({"quant_min": 0, "quant_max": 0}, AssertionError, "strictly less"),
        ({"dtype": rushlight.float16}, AssertionError, "only works for"),
        ({"qscheme": rushlight.per_channel_affine}, NotImplementedError, "qscheme only support"),
    ],
)
def test_wrong_ranges_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        ours.MinMaxObserver(**arguments)


def test_infinite_numbers_are_left_out():
    observer = ours.HistogramObserver(bins=8)
    with pytest.warns(UserWarning, match="torch.inf detected"):
        observer(rushlight.tensor([float("inf"), 1.0, 2.0]))
    assert observer.max_val.item() == 2.0


def test_makers_keep_arguments_apart():
    maker = ours.MinMaxObserver.with_args(quant_min=0, quant_max=127)
    signed = maker.with_args(dtype=rushlight.qint8)
    assert (maker().dtype, signed().dtype, signed().quant_max) == (rushlight.quint8, rushlight.qint8, 127)
    counted = iter(range(10))
    placed = ours.MinMaxObserver.with_callable_args(averaging_constant=lambda: next(counted))
    with pytest.raises(TypeError):
        placed()
    assert repr(maker).endswith("quant_min=0, quant_max=127){}")


def test_fake_quantisers_round_and_switch():
    layer = ours.FakeQuantize()
    x = rushlight.linspace(-1, 1, 9)
    rounded = layer(x)
    scale, zero = layer.scale.item(), layer.zero_point.item()
    expected = ((x / scale).round() + zero).clamp(0, 255).sub(zero) * scale
    assert rushlight.allclose(rounded, expected, atol=1e-6)
    layer.apply(ours.disable_fake_quant)
    assert layer(x) is x
    layer.apply(ours.enable_fake_quant)
    layer.apply(ours.disable_observer)
    layer(x * 10)
    assert layer.scale.item() == scale


@pytest.mark.parametrize("backend", "x86 fbgemm onednn qnnpack".split())
def test_default_configurations_are_pytorchs(backend):
    torch = pytest.importorskip("torch")
    theirs = torch.ao.quantization

    def text(qconfig):
        return repr(qconfig).replace("rushlight", "torch")

    assert text(ours.get_default_qconfig(backend)) == text(theirs.get_default_qconfig(backend))
    for version in (0, 1):
        assert text(ours.get_default_qat_qconfig(backend, version)) == text(
            theirs.get_default_qat_qconfig(backend, version)
        )
    for name in ("get_default_qconfig_mapping", "get_default_qat_qconfig_mapping"):
        mine, other = getattr(ours, name)(backend), getattr(theirs, name)(backend)
        assert [text(q) for q in mine.object_type_qconfigs.values()] == [
            text(q) for q in other.object_type_qconfigs.values()
        ]
        assert text(mine.global_qconfig) == text(other.global_qconfig)


def test_backends_that_do_not_exist_are_refused():
    with pytest.raises(AssertionError, match="backend must be one of"):
        ours.get_default_qconfig("tpu")
    with pytest.raises(AssertionError, match="Version number"):
        ours.get_default_qat_qconfig("x86", 7)
    with pytest.raises(ValueError, match="received observer instance"):
        ours.QConfig(activation=ours.MinMaxObserver(), weight=ours.default_weight_observer)


def test_mappings_go_to_dictionaries_and_back():
    mapping = (
        ours.QConfigMapping()
        .set_global(ours.default_qconfig)
        .set_object_type(rushlight.nn.Linear, None)
        .set_module_name_regex("layers.*", ours.default_qat_qconfig)
        .set_module_name("head", None)
        .set_module_name_object_type_order("body", rushlight.nn.Linear, 0, None)
    )
    again = ours.QConfigMapping.from_dict(mapping.to_dict())
    assert again.to_dict() == mapping.to_dict()
    assert ours.qconfig_equals(again.global_qconfig, copy.deepcopy(ours.default_qconfig))
    assert not ours.qconfig_equals(ours.default_qconfig, ours.default_per_channel_qconfig)


def test_engines_are_chosen_by_name():
    engines = rushlight.backends.quantized
    assert engines.engine in engines.supported_engines
    before = engines.engine
    try:
        engines.engine = "qnnpack"
        assert engines.engine == "qnnpack"
        with pytest.raises(RuntimeError, match="tpu is not a valid value for quantized engine"):
            engines.engine = "tpu"
        assert engines.engine == "qnnpack"
    finally:
        engines.engine = before
