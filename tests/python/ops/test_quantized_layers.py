"""Linear layers and convolutions of bytes, against exact sums and against PyTorch's operators.

Weights that PyTorch multiplies have seven bits: without VNNI its libraries saturate sums of two products.
"""

import warnings

import numpy as np
import pytest

import rushlight as rl

torch = pytest.importorskip("torch")
THEIRS, OURS = torch.ops.onednn, rl.ops.onednn
linear_dynamic = rl.ops.aten._quantized_linear_dynamic.default


def numbers(seed, *shape, dtype="float32", low=-1, high=1):
    x = np.random.default_rng(seed).uniform(low, high, shape)
    return (x if dtype.startswith("float") else np.round(x)).astype(dtype)


def both(array):
    return (None, None) if array is None else (torch.tensor(array), rl.tensor(array))


def dtypes(name):
    return getattr(torch, name), getattr(rl, name)


def near(theirs, ours):
    """Results in bytes may be a step apart where a sum lies between two."""
    assert str(theirs.dtype).removeprefix("torch.") == str(ours.dtype).removeprefix("torch.")
    assert theirs.shape == ours.shape
    a, b = theirs.double().numpy(), ours.double().numpy()
    if theirs.is_floating_point():
        tolerance = 1e-4 if theirs.dtype == torch.float32 else 2e-2
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    else:
        assert abs(a - b).max(initial=0) <= 1 and (a != b).mean() < 0.01


# --- dynamic linear layers


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("reduce_range", [False, True])
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (1, 64, 40), (5, 33, 7), (17, 130, 70), (60, 5, 3)])
def test_dynamic_linear(channels, relu, reduce_range, m, k, n):
    weight, bias = numbers(1, n, k, dtype="int8", low=-63, high=63), numbers(2, n)
    scales = numbers(3, n, low=0.01, high=0.05) if channels else np.array([0.02], "float32")
    zeros = np.zeros(n, "int64") if channels else np.array([3])
    operator = torch.ops.quantized.linear_relu_dynamic if relu else torch.ops.quantized.linear_dynamic
    for offset in (0, 0.9, -0.9):
        x, y = both(numbers(4, m, k) + np.float32(offset))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            w = torch.tensor(weight)
            s, z = torch.tensor(scales), torch.tensor(zeros)
            if channels:
                q = torch._make_per_channel_quantized_tensor(w, s.double(), z, 0)
            else:
                q = torch._make_per_tensor_quantized_tensor(w, s.item(), z.item())
            packed = torch.ops.quantized.linear_prepack(q, torch.tensor(bias))
            expected = operator(x, packed, reduce_range)
        settings = (rl.tensor(weight), rl.tensor(scales), rl.tensor(zeros), rl.tensor(bias))
        result = linear_dynamic(y, *settings, relu, reduce_range)
        np.testing.assert_allclose(expected.numpy(), result.numpy(), rtol=1e-5, atol=1e-5)


def test_dynamic_linear_of_other_shapes():
    w, s = rl.ones(3, 4, dtype=rl.int8), rl.tensor([0.5])
    x = rl.randn(2, 5, 4)
    assert linear_dynamic(x, w, s, None, None).shape == (2, 5, 3)
    assert linear_dynamic(x[:0], w, s, None, None).shape == (0, 5, 3)
    assert linear_dynamic(x[0, 0], w, s, None, None).shape == (3,)
    assert linear_dynamic(x.to("meta"), w.to("meta"), s.to("meta"), None, None).shape == (2, 5, 3)
    transposed = rl.randn(4, 6).t()
    assert rl.equal(
        linear_dynamic(transposed, w, s, None, None),
        linear_dynamic(transposed.contiguous(), w, s, None, None),
    )


def test_threads_share_rows_of_dynamic_linear():
    w, s = rl.tensor(numbers(1, 70, 96, dtype="int8", low=-128, high=127)), rl.tensor([0.5])
    x = rl.tensor(numbers(2, 1500, 96))
    results = []
    before = rl.get_num_threads()
    for threads in (1, 2):
        rl.set_num_threads(threads)
        results.append(linear_dynamic(x, w, s, None, None))
    rl.set_num_threads(before)
    assert rl.equal(*results)


def test_half_the_range_and_more():
    """Where rounding leads beyond seven bits, the sums stay exact."""
    for seed in range(40):
        x = numbers(seed, 3, 8, low=-1, high=1.5)
        w = np.full((5, 8), -128, "int8")
        result = linear_dynamic(rl.tensor(x), rl.tensor(w), rl.tensor([1.0]), None, None, False, True)
        low, high = min(x.min(), 0), max(x.max(), 0)
        scale = (float(high) - float(low)) / 127
        zero = (
            np.rint(-low / scale)
            if -abs(low / scale) < 127 - abs(high / scale)
            else np.rint(127 - high / scale)
        )
        steps = np.clip(np.rint(x * (np.float32(1) / np.float32(scale))) + np.clip(zero, 0, 127), 0, 255)
        exact = ((steps - np.clip(zero, 0, 127)) @ w.T.astype("int64")) * np.float32(scale)
        np.testing.assert_allclose(result.numpy(), exact, rtol=1e-5, atol=1e-3)


def test_refusals_of_dynamic_linear():
    w, s = rl.ones(3, 4, dtype=rl.int8), rl.tensor([0.5])
    for args, text in (
        ((rl.ones(2, 5), w, s), "X's last dimension must be 4"),
        ((rl.ones(2, 4).double(), w, s), "input must be float32"),
        ((rl.ones(2, 4), w.float(), s), "weight must be an int8 matrix"),
        ((rl.ones(2, 4), w, rl.ones(2)), "needs one scale or as many"),
        ((rl.full((2, 4), float("inf")), w, s), "the input holds an infinity"),
    ):
        with pytest.raises(RuntimeError, match=text):
            linear_dynamic(*args, None, None)


# --- layers of quantized activations

OUTPUTS = [("uint8", 0.7, 20), ("int8", 0.9, -3), ("float32", 1.0, 0), ("bfloat16", 1.0, 0)]
ACTIVATIONS = [
    ("none", [], ""),
    ("relu", [], ""),
    ("hardtanh", [-1.0, 2.0], ""),
    ("hardswish", [], ""),
    ("gelu", [], "none"),
    ("gelu", [], "tanh"),
    ("leaky_relu", [0.1], ""),
]


def input_bytes(dtype, *shape):
    return both(
        numbers(
            5, *shape, dtype=dtype, low=0 if dtype == "uint8" else -128, high=255 if dtype == "uint8" else 127
        )
    )


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda o: o[0])
@pytest.mark.parametrize("step", ACTIVATIONS, ids=lambda a: a[0] + a[2])
def test_linear(dtype, output, step):
    m, k, n = 5, 36, 19
    (x, y), (v, w) = input_bytes(dtype, m, k), both(numbers(6, n, k, dtype="int8", low=-63, high=63))
    (s, t), (z, u) = both(numbers(7, n, low=0.001, high=0.003)), both(np.zeros(n, "int64"))
    name, scale, zero = output
    out = dtypes(name)
    for bias in (None, numbers(8, n)):
        b, c = both(bias)
        expected = THEIRS.qlinear_pointwise(
            x, 0.02, 7, THEIRS.qlinear_prepack(v, x.shape), s, z, b, scale, zero, out[0], *step
        )
        result = OURS.qlinear_pointwise(
            y, 0.02, 7, OURS.qlinear_prepack(w, y.shape), t, u, c, scale, zero, out[1], *step
        )
        near(expected, result)
    settings = (rl.tensor(0.02), rl.tensor(7))
    packed = OURS.qlinear_prepack(w, y.shape)
    again = OURS.qlinear_pointwise.tensor(y, *settings, packed, t, u, c, scale, zero, out[1], *step)
    assert rl.equal(again, result)


def test_linear_with_zero_points_of_the_weight():
    m, k, n = 5, 36, 19
    x, w = (
        numbers(5, m, k, dtype="uint8", low=0, high=255),
        numbers(6, n, k, dtype="int8", low=-128, high=127),
    )
    zeros, scales = np.arange(n) - 9, numbers(7, n, low=0.001, high=0.003)
    expected = ((x.astype("int64") - 7) @ (w.astype("int64") - zeros[:, None]).T) * 0.02 * scales
    packed = OURS.qlinear_prepack(rl.tensor(w), None)
    settings = (packed, rl.tensor(scales), rl.tensor(zeros), None, 1.0, 0, rl.float32, "none", [], "")
    result = OURS.qlinear_pointwise(rl.tensor(x), 0.02, 7, *settings)
    np.testing.assert_allclose(expected, result.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("how", ["add", "sum"])
@pytest.mark.parametrize("unary", ["none", "relu"])
def test_linear_and_a_sum(how, unary):
    m, k, n = 4, 32, 16
    (x, y), (v, w) = input_bytes("uint8", m, k), both(numbers(6, n, k, dtype="int8", low=-63, high=63))
    (s, t), (z, u) = both(numbers(7, n, low=0.001, high=0.003)), both(np.zeros(n, "int64"))
    other = numbers(9, m, n) if how == "add" else numbers(9, m, n, dtype="float32")
    o, p = both(other)
    rest = (1.0, 0, how, 1.0, unary, [], "")
    expected = THEIRS.qlinear_pointwise.binary(
        x, 0.02, 7, THEIRS.qlinear_prepack(v, x.shape), s, z, o, None, 1.0, 0, torch.float32, *rest
    )
    result = OURS.qlinear_pointwise.binary(
        y, 0.02, 7, OURS.qlinear_prepack(w, y.shape), t, u, p, None, 1.0, 0, rl.float32, *rest
    )
    near(expected, result)
    assert (result.data_ptr() == p.data_ptr()) == (how == "sum")


WINDOWS = {
    "1x1": ((2, 8, 5, 7), (6, 8, 1, 1), 1, 0, 1, 1),
    "1x1 of stride 2": ((2, 8, 5, 7), (6, 8, 1, 1), 2, 0, 1, 1),
    "3x3": ((2, 5, 9, 6), (7, 5, 3, 3), 1, 1, 1, 1),
    "strided, dilated": ((1, 4, 12, 11), (33, 4, 3, 2), 2, 2, 2, 1),
    "grouped": ((2, 6, 7, 7), (8, 3, 3, 3), 1, 1, 1, 2),
    "depthwise": ((2, 37, 7, 8), (37, 1, 3, 3), 2, 1, 1, 37),
    "depthwise of 64": ((1, 64, 6, 6), (64, 1, 5, 5), 1, 2, 1, 64),
    "depthwise of long lines": ((1, 40, 3, 230), (40, 1, 3, 3), 1, 1, 1, 40),
    "depthwise of few channels": ((2, 3, 6, 9), (3, 1, 3, 3), 2, 1, 1, 3),
    "depthwise, dilated": ((1, 70, 11, 12), (70, 1, 5, 3), 1, 2, 3, 70),
    "depthwise of lines": ((2, 33, 40), (33, 1, 9), 2, 4, 1, 33),
    "depthwise in 3d": ((1, 35, 4, 5, 6), (35, 1, 2, 3, 3), 1, 1, 1, 35),
    "3x3 of many": ((1, 70, 7, 7), (40, 70, 3, 3), 1, 1, 1, 1),
    # Rows of whole tiles, which AMX reads where they lie: lines that end within tiles, planes, blocks.
    "3x3 of 64": ((3, 64, 7, 9), (40, 64, 3, 3), 1, 1, 1, 1),
    "3x3 of 64 of stride 2": ((2, 64, 9, 12), (33, 64, 3, 3), 2, 1, 1, 1),
    "3x3 of 64, large": ((1, 64, 27, 30), (7, 64, 3, 3), 1, 1, 1, 1),
    "3x1 of 128, strided, dilated": ((1, 128, 14, 13), (32, 128, 3, 1), 2, 2, 3, 1),
    "3d of 64": ((2, 64, 3, 5, 6), (8, 64, 2, 3, 3), 1, 1, 1, 1),
    "1d": ((2, 6, 13), (5, 6, 3), 2, 1, 1, 1),
    "3d": ((1, 3, 5, 6, 7), (4, 3, 2, 3, 3), 1, 1, 1, 1),
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda o: o[0])
@pytest.mark.parametrize(
    "step", [("none", [], ""), ("relu", [], ""), ("hardswish", [], "")], ids=lambda a: a[0]
)
def test_convolutions(window, output, step):  # PyTorch's take images of uint8 alone
    shape, filters, stride, padding, dilation, groups = WINDOWS[window]
    dims = len(shape) - 2
    if step[0] not in {1: ("none", "relu"), 2: (step[0],), 3: ("none",)}[dims]:
        step = ("none", [], "")  # the only ones of PyTorch's
    (x, y), (v, w) = (
        input_bytes("uint8", *shape),
        both(numbers(6, *filters, dtype="int8", low=-63, high=63)),
    )
    n = filters[0]
    (s, t), (z, u) = both(numbers(7, n, low=0.001, high=0.003)), both(np.zeros(n, "int64"))
    b, c = both(numbers(8, n))
    settings = [stride] * dims, [padding] * dims, [dilation] * dims, groups
    name, scale, zero = output
    out = dtypes(name)
    results = []
    for lib, image, weight, scales, zeros, bias, kind in (
        (THEIRS, x, v, s, z, b, out[0]),
        (OURS, y, w, t, u, c, out[1]),
    ):
        packed = lib.qconv_prepack(weight, scales, 0.02, 7, *settings, list(shape))
        results.append(
            lib.qconv_pointwise(
                image, 0.02, 7, packed, scales, zeros, bias, *settings, scale, zero, kind, *step
            )
        )
    near(*results)
    if dims == 2:
        assert results[1].is_contiguous(memory_format=rl.channels_last)


@pytest.mark.parametrize("window", WINDOWS)
def test_convolutions_are_exact(window):
    """Extreme bytes, zero points of filters, and images of any layout, against sums of 64 bits."""
    shape, filters, stride, padding, dilation, groups = WINDOWS[window]
    dims = len(shape) - 2
    n = filters[0]
    settings = [stride] * dims, [padding] * dims, [dilation] * dims, groups
    conv = getattr(rl.nn.functional, f"conv{dims}d")
    for x, w, zeros in (
        (np.full(shape, 255, "uint8"), np.full(filters, -128, "int8"), np.zeros(n, "int64")),
        (np.full(shape, -128, "int8"), np.full(filters, -128, "int8"), np.zeros(n, "int64")),
        (
            numbers(1, *shape, dtype="int8", low=-128, high=127),
            numbers(2, *filters, dtype="int8", low=-128, high=127),
            np.arange(n) - 2,
        ),
        # Of seven bits, which processors without VNNI may add in words.
        (np.full(shape, 127, "uint8"), np.full(filters, -128, "int8"), np.zeros(n, "int64")),
        (
            numbers(3, *shape, dtype="uint8", low=0, high=127),
            np.clip(np.round(np.random.default_rng(4).normal(size=filters) * 50), -128, 127).astype("int8"),
            np.zeros(n, "int64"),
        ),
    ):
        weight = rl.tensor(w).double() - rl.tensor(zeros).double().view(-1, *[1] * (len(shape) - 1))
        expected = conv(rl.tensor(x).double() - 3, weight, None, *settings)
        for image in (rl.tensor(x), rl.tensor(x.T.copy()).permute(*reversed(range(len(shape))))):
            result = OURS.qconv_pointwise(
                image,
                1.0,
                3,
                rl.tensor(w),
                rl.ones(n),
                rl.tensor(zeros),
                None,
                *settings,
                1.0,
                0,
                rl.float32,
                "none",
                [],
                "",
            )
            assert rl.equal(result.double(), expected)


@pytest.mark.parametrize("window", ["1x1", "3x3", "depthwise", "depthwise of 64"])
@pytest.mark.parametrize("dtype, low, high", [("uint8", 0, 255), ("int8", -128, 127)])
@pytest.mark.parametrize("relu", [False, True])
def test_bytes_are_sums_that_are_rounded_and_bounded(window, dtype, low, high, relu):
    """Large factors, infinities and NaN included: what is no number becomes the least one."""
    shape, filters, stride, padding, dilation, groups = WINDOWS[window]
    n = filters[0]
    settings = [stride] * 2, [padding] * 2, [dilation] * 2, groups
    x = rl.tensor(numbers(1, *shape, dtype="uint8", low=0, high=255))
    w = rl.tensor(numbers(2, *filters, dtype="int8", low=-128, high=127))
    scales = numbers(3, n, low=0.0001, high=0.02)
    scales[1] = 1e30
    bias = numbers(4, n)
    bias[2], bias[3 % n] = np.inf, np.nan

    def result(kind, scale, zero, bias):
        z, b = rl.zeros(n, dtype=rl.int64), None if bias is None else rl.tensor(bias)
        step = ("relu" if relu and kind != rl.float32 else "none", [], "")
        s = rl.tensor(scales) if kind != rl.float32 else rl.ones(n)
        return OURS.qconv_pointwise(x, 1.0, 3, w, s, z, b, *settings, scale, zero, kind, *step).numpy()

    zero = 7
    sums = result(rl.float32, 1.0, 0, None).transpose(0, 2, 3, 1)  # exact
    with np.errstate(all="ignore"):
        y = np.rint((sums + bias / scales) * (scales / np.float32(0.5)))
    least = max(low, zero) if relu else low
    expected = np.where(y > least - zero, np.minimum(y, high - zero), least - zero).astype("int64") + zero
    got = result(getattr(rl, dtype), 0.5, zero, bias).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype, low, high", [("uint8", 0, 255), ("int8", -128, 127)])
@pytest.mark.parametrize("x_zero, zero", [(0, 0), (0, 7), (5, 0)])
@pytest.mark.parametrize("scale", [0.05, 1e-9], ids=["usual", "beyond integers"])
def test_bytes_of_usual_and_other_numbers(dtype, low, high, x_zero, zero, scale):
    """What usual numbers need not be asked for (terms of zero points, bounds) is asked for in all others."""
    settings = [1] * 2, [1] * 2, [1] * 2, 1
    x = rl.tensor(numbers(1, 2, 64, 7, 9, dtype="uint8", low=0, high=255))
    w = rl.tensor(numbers(2, 72, 64, 3, 3, dtype="int8", low=-128, high=127))
    scales, bias = numbers(3, 72, low=0.00001, high=0.0001), numbers(4, 72, low=-4, high=4)
    z = rl.zeros(72, dtype=rl.int64)

    def result(kind, scales, bias, scale, zero):
        step = ("none", [], "")
        return OURS.qconv_pointwise(
            x, 1.0, x_zero, w, rl.tensor(scales), z, bias, *settings, scale, zero, kind, *step
        ).numpy()

    sums = result(rl.float32, np.ones(72, "f"), None, 1.0, 0).transpose(0, 2, 3, 1)  # exact
    y = np.rint((sums + bias / scales) * (scales / np.float32(scale)))
    expected = np.clip(y, low - zero, high - zero).astype("int64") + zero
    got = result(getattr(rl, dtype), scales, rl.tensor(bias), scale, zero).transpose(0, 2, 3, 1)
    assert len(np.unique(expected)) > (100 if scale > 1e-3 else 1)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("how", ["sum"])
@pytest.mark.parametrize("unary", ["none", "relu"])
def test_convolution_and_a_sum(how, unary):
    shape, filters = (2, 8, 6, 6), (8, 8, 3, 3)
    (x, y), (v, w) = (
        input_bytes("uint8", *shape),
        both(numbers(6, *filters, dtype="int8", low=-63, high=63)),
    )
    (s, t), (z, u) = both(numbers(7, 8, low=0.001, high=0.003)), both(np.zeros(8, "int64"))
    o, p = both(numbers(9, *shape, dtype="uint8", low=0, high=255))
    settings = [1, 1], [1, 1], [1, 1], 1
    results = []
    for lib, image, weight, scales, zeros, other in ((THEIRS, x, v, s, z, o), (OURS, y, w, t, u, p)):
        packed = lib.qconv_prepack(weight, scales, 0.02, 7, *settings, list(shape))
        memory = torch.channels_last if lib is THEIRS else rl.channels_last
        other = other.contiguous(memory_format=memory)
        kind = torch.uint8 if lib is THEIRS else rl.uint8
        results.append(
            lib.qconv2d_pointwise.binary(
                image,
                0.02,
                7,
                packed,
                scales,
                zeros,
                other,
                None,
                *settings,
                0.1,
                20,
                kind,
                0.05,
                11,
                how,
                1.0,
                unary,
                [],
                "",
            )
        )
        assert (results[-1] == other).all()  # written there too
    near(*results)


def test_refusals_of_convolutions():
    x, w, s, z = (
        rl.zeros(1, 4, 5, 5, dtype=rl.uint8),
        rl.zeros(3, 4, 3, 3, dtype=rl.int8),
        rl.ones(3),
        rl.zeros(3),
    )
    plain = ([1, 1], [0, 0], [1, 1], 1, 1.0, 0, rl.float32, "none", [], "")

    def call(x=x, scale=1.0, w=w, rest=plain):
        return OURS.qconv_pointwise(x, scale, 0, w, s, z, None, *rest)

    for change, text in (
        ({"x": x.float()}, "the input must be uint8 or int8"),
        ({"scale": 0.0}, "the input's scale must be a positive number"),
        ({"scale": float("nan")}, "the input's scale must be a positive number"),
        ({"w": w.float()}, "filters must be int8"),
        ({"w": w[:, :3]}, "do not fit an image"),
        ({"w": rl.zeros(3, 4, 6, 6, dtype=rl.int8)}, "the window is larger than the padded image"),
        ({"rest": ([0, 1], *plain[1:])}, "stride and dilation must be positive"),
        (
            {"rest": (*plain[:4], 0.0, 0, rl.uint8, *plain[7:])},
            "the output's scale must be a positive number",
        ),
        ({"rest": (*plain[:7], "cubic", [], "")}, "got 'cubic'"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call(**change)


@pytest.mark.parametrize("window", [(1, 0), (0, 1), (0, 0)])
def test_convolutions_of_filters_of_no_elements_are_refused(window):
    x, filters = rl.ones(1, 4, 4, 3, dtype=rl.int8), rl.ones(5, 4, *window, dtype=rl.int8)
    weight = filters, rl.ones(5), rl.zeros(5, dtype=rl.int64), None
    output = 1.0, 0, rl.int8, "none", [], ""
    with pytest.raises(RuntimeError, match="filters of no elements"):
        OURS.qconv2d_pointwise(x, 0.1, 3, *weight, [1, 1], [0, 0], [1, 1], 1, *output)
