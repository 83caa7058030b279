"""Wrong scales, zero points, axes, observers, engines and files: PyTorch's exceptions; no number wraps."""

import math
import random

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.ao import quantization
from rushlight.export import load_file, save_file

X = torch.tensor([[-1.5, 0.2, 3.0], [7.0, -2.0, 0.5]])
INF, NAN = math.inf, math.nan


def _bytes(x, scale=0.1, zero=5, dtype=torch.quint8):
    return torch.quantize_per_tensor(x, scale, zero, dtype)


def _channels(scales, zeros, axis, dtype=torch.qint8):
    return torch.quantize_per_channel(X, torch.tensor(scales), torch.tensor(zeros), axis, dtype)


def _rounded(*arguments):
    return torch.fake_quantize_per_tensor_affine(X, *arguments)


def _rounded_channels(zeros, axis, count=3):
    scales = torch.full((count,), 0.1)
    return torch.fake_quantize_per_channel_affine(X, scales, torch.tensor(zeros).int(), axis, 0, 255)


def _packed():
    return torch.ops.quantized.linear_prepack(_bytes(torch.ones(4, 3), 0.1, 0, torch.qint8), None)


REFUSED = {
    "zero point above": (
        lambda: _bytes(X, 0.1, 300),
        RuntimeError,
        "zero_point 300 is above upper.*0 and 255",
    ),
    "zero point below": (lambda: _bytes(X, 0.1, -1), RuntimeError, "zero_point -1 is below lower.*0 and 255"),
    "zero point of qint8": (
        lambda: _bytes(X, 0.1, 128, torch.qint8),
        RuntimeError,
        "above upper.*-128 and 127",
    ),
    "zero point of 40 bits": (
        lambda: _bytes(X, 0.1, 1 << 40, torch.qint32),
        RuntimeError,
        "above upper bound",
    ),
    "zero point of a channel": (
        lambda: _channels([0.1] * 3, [0, 0, 300], 1),
        RuntimeError,
        "quantize_tensor_per_channel_affine zero_point 300 is above upper bound",
    ),
    "axis": (lambda: _channels([0.1] * 2, [0] * 2, 2), RuntimeError, "Channel axis out of range"),
    "axis below zero": (lambda: _channels([0.1] * 3, [0] * 3, -1), RuntimeError, "Channel axis out of range"),
    "too few scales": (lambda: _channels([0.1] * 2, [0] * 2, 1), RuntimeError, "length of scales"),
    "scales and zero points": (lambda: _channels([0.1] * 3, [0] * 2, 1), RuntimeError, "must match"),
    "axis of rounding": (lambda: _rounded_channels([0] * 3, 5), IndexError, "Dimension out of range"),
    "scales of rounding": (
        lambda: _rounded_channels([0] * 2, 1, 2),
        RuntimeError,
        "not consistent with input",
    ),
    "zero points of rounding": (
        lambda: _rounded_channels([0, 0, 999], 1),
        RuntimeError,
        "between `quant_min`",
    ),
    "zero point of rounding": (lambda: _rounded(0.1, 300, 0, 255), RuntimeError, "between `quant_min`"),
    "bounds of rounding": (lambda: _rounded(0.1, 0, 255, 0), RuntimeError, "should be less than or"),
    "integers": (lambda: _bytes(torch.tensor([1, 2])), RuntimeError, "only works on Float Tensor"),
    "a dtype of numbers": (lambda: _bytes(X, dtype=torch.float32), RuntimeError, "quantized"),
    "a range that is NaN": (
        lambda: torch.quantize_per_tensor_dynamic(torch.tensor([NAN, 1]), torch.quint8, False),
        RuntimeError,
        "min should be less than or equal to max",
    ),
    "an endless range": (
        lambda: torch.quantize_per_tensor_dynamic(torch.tensor([INF, 1]), torch.quint8, False),
        RuntimeError,
        "zero_point .* lower bound",
    ),
    "dtypes of a sum": (
        lambda: torch.ops.quantized.add(_bytes(X), _bytes(X, dtype=torch.qint8), 0.1, 0),
        RuntimeError,
        "same data type",
    ),
    "schemes of a sum": (
        lambda: torch.ops.quantized.add(_bytes(X), _channels([0.1] * 3, [0] * 3, 1, torch.quint8), 0.1, 0),
        RuntimeError,
        "same quantization scheme",
    ),
    "a sum with numbers": (
        lambda: torch.ops.quantized.add(_bytes(X), X, 0.1, 0),
        RuntimeError,
        "two quantized",
    ),
    "a plain sum": (lambda: _bytes(X) + _bytes(X), NotImplementedError, r"dequantize\(\)"),
    "numbers in a layer": (
        lambda: torch.ops.quantized.linear(X, _packed(), 0.1, 0),
        NotImplementedError,
        "not quantized",
    ),
    "no scale of a result": (
        lambda: torch.ops.quantized.linear(_bytes(X), _packed(), 0.0, 0),
        RuntimeError,
        "scale must be a positive number, got 0",
    ),
    "a result's scale that is NaN": (
        lambda: torch.ops.quantized.linear(_bytes(X), _packed(), NAN, 0),
        RuntimeError,
        "scale must be a positive number, got nan",
    ),
    "a weight along its columns": (
        lambda: torch.ops.quantized.linear_prepack(_channels([0.1] * 3, [0] * 3, 1), None),
        RuntimeError,
        "along axis 0",
    ),
    "the scale of channels": (
        lambda: _channels([0.1] * 3, [0] * 3, 1).q_scale(),
        RuntimeError,
        "kPerTensorAffine",
    ),
    "an engine": (
        lambda: setattr(torch.backends.quantized, "engine", "no"),
        RuntimeError,
        "no is not a valid value for quantized engine",
    ),
    "an engine's settings": (
        lambda: quantization.get_default_qconfig("no"),
        AssertionError,
        "backend: no not supported.*fbgemm",
    ),
    "an engine's mapping": (
        lambda: quantization.get_default_qat_qconfig_mapping("no"),
        AssertionError,
        "backend: no not supported.*fbgemm",
    ),
    "an observer's scheme": (
        lambda: quantization.MinMaxObserver(qscheme=torch.per_channel_affine),
        NotImplementedError,
        "per_tensor_symmetric",
    ),
    "an observer's dtype": (
        lambda: quantization.MinMaxObserver(dtype=torch.float64),
        AssertionError,
        "only works for",
    ),
    "an observer's range": (
        lambda: quantization.MinMaxObserver(quant_min=10, quant_max=5),
        AssertionError,
        "must include 0",
    ),
    "an observer's axis": (
        lambda: quantization.PerChannelMinMaxObserver(ch_axis=4)(X),
        IndexError,
        "out of range",
    ),
    "a histogram of NaN": (
        lambda: quantization.HistogramObserver()(torch.tensor([1.0, NAN])),
        RuntimeError,
        "is not finite",
    ),
    "a dynamic dtype": (
        lambda: quantization.quantize_dynamic(nn.Sequential(nn.Linear(3, 2)), dtype=torch.float64),
        ValueError,
        "Provide full qconfig",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("scale, wanted", [(0.0, [0, 255, 255]), (INF, [0, 0, 0]), (NAN, [255, 255, 255])])
def test_scales_that_are_no_steps_give_the_ends(scale, wanted):
    torch_ = pytest.importorskip("torch")
    found = torch.quantize_per_tensor(X[0], scale, 0, torch.quint8).int_repr().tolist()
    theirs = (
        torch_.quantize_per_tensor(torch_.tensor(X[0].tolist()), scale, 0, torch_.quint8).int_repr().tolist()
    )
    assert found == theirs == wanted


@pytest.mark.parametrize(
    "kind", ["MinMaxObserver", "MovingAverageMinMaxObserver", "PerChannelMinMaxObserver", "HistogramObserver"]
)
def test_observers_that_saw_nothing_say_so(kind):
    with pytest.warns(UserWarning, match="must run observer before calling calculate_qparams"):
        scale, zero = getattr(quantization, kind)().calculate_qparams()
    assert scale.tolist() == [1] and zero.tolist() == [0]


def test_numbers_beyond_the_grid_become_its_ends():
    far = torch.tensor([1e30, -1e30, INF, -INF])
    assert _bytes(far, 0.1, 3).int_repr().tolist() == [255, 0, 255, 0]
    ends = [2**31 - 1, -(2**31)]
    assert _bytes(far, 0.1, 3, torch.qint32).int_repr().tolist() == ends * 2
    assert _bytes(torch.tensor([2e9]), 1.0, 2 * 10**9, torch.qint32).int_repr().tolist() == [2**31 - 1]
    made = torch._make_per_tensor_quantized_tensor(
        torch.tensor([-(2 * 10**9)], dtype=torch.int32), 1.0, 2 * 10**9
    )
    assert made.dequantize().tolist() == [-4e9]
    whole = _bytes(torch.full((1, 1, 3000, 4000), 255.0), 1.0, 0)
    assert whole.mean((2, 3)).dequantize().item() == 255
    assert nn.functional.avg_pool2d(whole, (3000, 4000)).dequantize().item() == 255


@pytest.mark.parametrize("k", [65_793, 70_000, 140_001])
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("dtype, zero", [(torch.quint8, 0), (torch.quint8, 255), (torch.qint8, -128)])
def test_sums_of_long_rows_do_not_wrap(k, rows, dtype, zero):
    """Of 65,793 products of bytes the sum may pass 32 bits."""
    low = 0 if dtype == torch.quint8 else -128
    level = 0 if zero == 255 else low + 255
    x = torch._make_per_tensor_quantized_tensor(
        torch.full((rows, k), level, dtype=torch.uint8 if low == 0 else torch.int8), 1.0, zero
    )
    weight = torch.full((3, k), -128.0)
    weight[1] = 127
    weight[2, ::2] = 127
    packed = torch.ops.quantized.linear_prepack(_bytes(weight, 1.0, 0, torch.qint8), None)
    wanted = x.dequantize().double() @ weight.double().t()
    scale = float(wanted.abs().max()) / 100
    found = torch.ops.quantized.linear(x, packed, scale, 0 if low else 128)
    assert (found.dequantize() - wanted).abs().max() <= scale * 0.51
    if dtype == torch.quint8 and zero == 0:
        found = torch.ops.quantized.linear_dynamic(x.dequantize(), packed)
        assert torch.allclose(found.double(), wanted, rtol=1e-6)


def test_sums_of_convolutions_do_not_wrap():
    channels = 7400  # times nine
    x, weight = torch.full((1, channels, 3, 4), 255.0), torch.full((2, channels, 3, 3), 127.0)
    weight[1] = -128
    wanted = 255.0 * weight.double().sum((1, 2, 3))
    scale = float(wanted.abs().max()) / 100
    packed = torch.ops.quantized.conv2d_prepack(
        _bytes(weight, 1.0, 0, torch.qint8), None, [1, 1], [0, 0], [1, 1], 1
    )
    found = torch.ops.quantized.conv2d(_bytes(x, 1.0, 0), packed, scale, 128).dequantize()
    assert (found[0, :, 0, 0] - wanted).abs().max() <= scale * 0.51


def test_a_damaged_file_is_one_error(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(quantization.QuantStub(), nn.Linear(6, 8), quantization.DeQuantStub()).eval()
    model.qconfig = quantization.default_qconfig
    prepared = quantization.prepare(model)
    x = torch.randn(4, 6)
    prepared(x)
    made, path = quantization.convert(prepared), tmp_path / "m.rl"
    save_file(made, path, (x,))
    whole = path.read_bytes()
    wanted, draw, refused = made(x), random.Random(0), 0
    for _ in range(200):
        damaged = bytearray(whole)
        if draw.random() < 0.3:
            del damaged[draw.randrange(len(damaged)) :]
        else:
            for _ in range(draw.choice([1, 4])):
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        path.write_bytes(bytes(damaged))
        try:
            found = load_file(path)(x)
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            assert str(error)
            refused += 1
        else:
            assert found.shape == wanted.shape  # a weight's or a scale's bytes
    assert refused > 50


@pytest.mark.parametrize("where", range(3))
def test_steps_of_files_beside_operands_without_data_have_none(where):
    x, weight, scales = torch.ones(3, 16), torch.ones(6, 16, dtype=torch.int8), torch.ones(6)
    operands = [x, weight, scales]
    operands[where] = operands[where].to("meta")
    y = torch.ops.aten._weight_only_linear(*operands)
    assert y.is_meta and y.shape == (3, 6)
    rows = [weight, scales, torch.zeros(2, dtype=torch.int64)]
    rows[where] = rows[where].to("meta")
    assert torch.ops.aten._weight_only_embedding(*rows).is_meta
    a, b = torch.ones(2, 3), torch.ones(2, 3, device="meta")
    for left, right in ((a, b), (b, a)):
        z = torch.ops.aten._quantized_sum(left, 1.0, 0, right, 1.0, 0, 1.0, 0, torch.int8, False)
        assert z.is_meta and z.shape == (2, 3)
