"""Quantization as graphs write it down: against PyTorch's operators of the same names."""

import numpy as np
import pytest

import rushlight as rl

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.fx._decomposed")

THEIRS, OURS = torch.ops.quantized_decomposed, rl.ops.quantized_decomposed
RANGES = {"uint8": (0, 255), "int8": (-128, 127), "int16": (-32768, 32767), "int32": (-(2**31), 2**31 - 1)}


def pair(array):
    return torch.tensor(array), rl.tensor(array)


def same(theirs, ours, **tolerance):
    theirs = theirs if isinstance(theirs, tuple) else (theirs,)
    ours = ours if isinstance(ours, tuple) else (ours,)
    for a, b in zip(theirs, ours, strict=True):
        assert str(a.dtype).removeprefix("torch.") == str(b.dtype).removeprefix("torch.")
        assert a.shape == b.shape
        if a.is_floating_point():
            np.testing.assert_allclose(
                a.double().numpy(), b.double().numpy(), **(tolerance or {"rtol": 1e-6})
            )
        else:
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def floats(*shape):
    x = np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32") * 3
    x.flat[:4] = [0.05, -0.05, 1e6, -1e6]  # halves of a step, and what is out of range
    return x


@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("half", ["float32", "bfloat16", "float16"])
def test_one_scale(dtype, half):
    low, high = RANGES[dtype]
    for shape in ((3, 37), (4,), (1, 0), (2, 3, 64)):
        x, y = pair(floats(*shape) if 0 not in shape else np.zeros(shape, "float32"))
        if dtype == "int32":  # 2**31 - 1 is no float32: what lies beyond has no value
            x, y = x.clamp(-1e3, 1e3), y.clamp(-1e3, 1e3)
        x, y = x.to(getattr(torch, half)), y.to(getattr(rl, half))
        args = (0.1, 3, low, high)
        a = THEIRS.quantize_per_tensor(x, *args, getattr(torch, dtype))
        b = OURS.quantize_per_tensor(y, *args, getattr(rl, dtype))
        same(a, b)
        same(
            THEIRS.dequantize_per_tensor(a, *args, a.dtype),
            OURS.dequantize_per_tensor(b, *args, b.dtype),
        )
        out = {"out_dtype": torch.bfloat16}, {"out_dtype": rl.bfloat16}
        same(
            THEIRS.dequantize_per_tensor(a, *args, a.dtype, **out[0]),
            OURS.dequantize_per_tensor(b, *args, b.dtype, **out[1]),
        )


def test_settings_in_tensors_and_other_layouts():
    x, y = pair(floats(8, 6))
    for view in (lambda t: t.t(), lambda t: t[::2], lambda t: t[:, 1:4]):
        args = [(t.tensor(0.1), t.tensor(3), -128, 127, t.int8) for t in (torch, rl)]
        a, b = (
            THEIRS.quantize_per_tensor(view(x), *args[0]),
            OURS.quantize_per_tensor.tensor(view(y), *args[1]),
        )
        same(a, b)
        same(THEIRS.dequantize_per_tensor(a, *args[0]), OURS.dequantize_per_tensor(b, *args[1]))
    args = [(t.tensor(0.1), t.tensor(3), t.tensor(-128), t.tensor(127), t.int8) for t in (torch, rl)]
    a, b = THEIRS.quantize_per_tensor.tensor2(x, *args[0]), OURS.quantize_per_tensor.tensor2(y, *args[1])
    same(a, b)
    same(THEIRS.dequantize_per_tensor.tensor2(a, *args[0]), OURS.dequantize_per_tensor.tensor2(b, *args[1]))


@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("settings", ["float32", "float64"])
def test_a_scale_for_each_channel(dtype, axis, settings):
    low, high = RANGES[dtype]
    x, y = pair(np.clip(floats(3, 5, 4), -100, 100))
    n = x.shape[axis]
    scales = np.linspace(0.05, 0.2, n).astype(settings)
    zeros = np.arange(n)
    (s, t), (z, u) = pair(scales), pair(zeros)
    a = THEIRS.quantize_per_channel(x, s, z, axis, low, high, getattr(torch, dtype))
    b = OURS.quantize_per_channel(y, t, u, axis, low, high, getattr(rl, dtype))
    same(a, b)
    for zero in ((z, u), (None, None)):
        same(
            THEIRS.dequantize_per_channel(a, s, zero[0], axis, low, high, a.dtype),
            OURS.dequantize_per_channel(b, t, zero[1], axis, low, high, b.dtype),
        )


@pytest.mark.parametrize("name", ["choose_qparams", "choose_qparams_symmetric"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_chosen_scales(name, dtype):
    for x in (
        floats(3, 5),
        np.abs(floats(4, 4)),
        -np.abs(floats(4, 5)),
        np.zeros((3,), "float32"),
        np.full((2,), 1e-9, "float32"),
    ):
        a, b = pair(x)
        args = (*RANGES[dtype], 1e-5)
        same(
            getattr(THEIRS, name).tensor(a, *args, getattr(torch, dtype)),
            getattr(OURS, name).tensor(b, *args, getattr(rl, dtype)),
        )


def test_tokens():
    x, y = pair(np.clip(floats(2, 3, 17), -50, 50))
    a = THEIRS.choose_qparams_per_token(x, torch.int8)
    b = OURS.choose_qparams_per_token(y, rl.int8)
    same(a, b)
    c = THEIRS.choose_qparams_per_token_asymmetric(x, torch.int8)
    d = OURS.choose_qparams_per_token_asymmetric(y, rl.int8)
    same(c, d)
    for (s, z), (t, u) in ((a, b), (c, d)):
        q = THEIRS.quantize_per_token(x, s, z, -128, 127, torch.int8)
        r = OURS.quantize_per_token(y, t, u, -128, 127, rl.int8)
        same(q, r)
        same(
            THEIRS.dequantize_per_token(q, s, z, -128, 127, torch.int8, torch.float32),
            OURS.dequantize_per_token(r, t, u, -128, 127, rl.int8, rl.float32),
        )


@pytest.mark.parametrize("zeros", [True, False])
def test_groups_of_columns(zeros):
    x, y = pair(np.clip(floats(3, 64), -50, 50))
    (s, t), (z, u) = (
        pair(np.linspace(0.1, 0.5, 12).astype("float32").reshape(3, 4)),
        pair(np.arange(12).reshape(3, 4)),
    )
    q = THEIRS.quantize_per_channel_group(x, s, z, -8, 7, torch.int8, 16)
    r = OURS.quantize_per_channel_group(y, t, u, -8, 7, rl.int8, 16)
    same(q, r)
    same(
        THEIRS.dequantize_per_channel_group(q, s, z if zeros else None, -8, 7, torch.int8, 16, torch.float32),
        OURS.dequantize_per_channel_group(r, t, u if zeros else None, -8, 7, rl.int8, 16, rl.float32),
    )


def test_fake_quantization_of_channels_and_its_gradient():
    results = []
    for lib in (torch, rl):
        x = lib.tensor(np.clip(floats(3, 5), -40, 40)).requires_grad_()
        scales, zeros = lib.tensor([0.1, 0.2, 0.3]), lib.tensor([1, 2, 3])
        y = lib.ops.quantized_decomposed.fake_quant_per_channel(x, scales, zeros, 0, -128, 127)
        (y * lib.arange(15).view(3, 5)).sum().backward()
        results.append((y.detach(), x.grad))
    same(*results)


def test_shapes_without_data():
    x = rl.empty(2, 3, device="meta")
    q = OURS.quantize_per_tensor(x, 0.1, 0, -128, 127, rl.int8)
    assert q.dtype == rl.int8 and q.shape == (2, 3)
    assert OURS.dequantize_per_tensor(q, 0.1, 0, -128, 127, rl.int8).dtype == rl.float32
    scales, zeros = rl.empty(3, device="meta"), rl.empty(3, dtype=rl.int64, device="meta")
    q = OURS.quantize_per_channel(x, scales, zeros, 1, -128, 127, rl.int8)
    assert q.dtype == rl.int8 and OURS.dequantize_per_channel(
        q, scales, zeros, 1, -128, 127, rl.int8
    ).shape == (2, 3)


def test_refusals():
    x = rl.ones(2, 3)
    with pytest.raises(
        AssertionError, match="quant_max out of bounds for dtype, quant_max_upper_bound: 127 quant_max: 128"
    ):
        OURS.quantize_per_tensor(x, 0.1, 0, -128, 128, rl.int8)
    with pytest.raises(ValueError, match="Unsupported dtype: torch.int64"):
        OURS.quantize_per_tensor(x, 0.1, 0, 0, 1, rl.int64)
    with pytest.raises(ValueError, match="the scale is zero"):
        OURS.quantize_per_tensor(x, 0.0, 0, 0, 1, rl.int8)
    with pytest.raises(AssertionError, match="Expecting input to have dtype torch.float32"):
        OURS.quantize_per_tensor(x.double(), 0.1, 0, 0, 1, rl.int8)
    with pytest.raises(
        AssertionError, match="Expecting input to have dtype: torch.int8, but got torch.uint8"
    ):
        OURS.dequantize_per_tensor(x.to(rl.uint8), 0.1, 0, 0, 1, rl.int8)
    with pytest.raises(AssertionError, match="Expecting axis to be < 2"):
        OURS.quantize_per_channel(x, rl.ones(3), rl.zeros(3), 2, 0, 1, rl.int8)
    with pytest.raises(AssertionError, match="num_tokens: 2"):
        OURS.quantize_per_token(x, rl.ones(3), rl.zeros(3), 0, 1, rl.int8)
    with pytest.raises(AssertionError, match="must be divisible by group_size"):
        OURS.quantize_per_channel_group(x, rl.ones(2, 1), rl.zeros(2, 1), 0, 1, rl.int8, 2)
