"""Rows of products of whole numbers, of weights in eight bits, and of numbers that are rounded so."""

import numpy as np
from rows import Quantized, Row, Sample, fixed, fixed_rows, given
from samples_reduction import real, whole

WEIGHT = whole(6, 16).astype(np.int8)
ZEROS = given(whole(4, low=0, high=9).astype(np.int32))
SCALES = given(np.abs(real(4)) + 0.1)
ON, OFF = np.array([1]), np.array([0])
STATE = (given(real(1) - 3), given(real(1) + 3), given(np.ones(1)), given(np.zeros(1, dtype=np.int32)))
ROW_STATE = tuple(given(np.repeat(s, 4)) for s in STATE)
HALF = given(np.array([0.5]))
INSIDE = whole(4, 3, low=0, high=1).astype(bool)

MISREAD = "PyTorch reads some layouts as if they were contiguous"

STEPS = "the result is a step function, and its gradient is not the slope"
ROUNDED = dict.fromkeys(("gradcheck", "gradgradcheck", "forward"), STEPS)
NUMBERS = {"vmap": "scale and zero point are read as numbers", "device": "scale and zero point are read"}
WRITES = {"vmap": "what is observed is written to, and not batched", "device": NUMBERS["device"]}
FLOAT = {"fuzz": "running extremes are float32"}
FAKE = {
    "fake_quantize_per_tensor_affine": [
        ((real(4, 3), 0.1, 3, 0, 255), {}),
        ((real(4, 3), 0.3, 0, -2, 2), {}),
        ((real(4, 3), HALF, given(np.array([1], dtype=np.int32)), -2, 2), {}),
    ],
    "fake_quantize_per_channel_affine": [
        ((real(4, 3), SCALES, ZEROS, 0, 0, 9), {}),
        ((real(2, 4, 3), SCALES, ZEROS, 1, -9, 9), {}),
    ],
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams": [
        ((real(4, 3), HALF, given(np.array([1], dtype=np.int32)), on, -2, 2), {}) for on in (ON, OFF)
    ],
    "ops.aten.fake_quantize_per_tensor_affine_cachemask": [((real(4, 3), 0.1, 3, 0, 255), {})],
    "ops.aten.fake_quantize_per_channel_affine_cachemask": [((real(4, 3), SCALES, ZEROS, 0, 0, 9), {})],
}
MASKED = {
    f"ops.aten.fake_quantize_per_{kind}_affine_cachemask_backward": [((real(4, 3), INSIDE), {})]
    for kind in ("tensor", "channel")
}
LEARNED = {
    "_fake_quantize_learnable_per_tensor_affine": [((real(4, 3), np.array([0.2]), real(1), -5, 5, 0.5), {})],
    "_fake_quantize_learnable_per_channel_affine": [
        ((real(4, 3), np.abs(real(4)) + 0.1, real(4), 0, -5, 5, 0.5), {})
    ],
    "ops.aten._fake_quantize_learnable_per_tensor_affine_backward": [
        ((real(4, 3), real(4, 3), HALF, given(real(1)), -5, 5, 0.5), {})
    ],
    "ops.aten._fake_quantize_learnable_per_channel_affine_backward": [
        ((real(4, 3), real(4, 3), SCALES, given(real(4)), 0, -5, 5, 0.5), {})
    ],
}
SEARCHED = {"choose_qparams_optimized": [((real(12), 12, 200, 0.16, 8), {})]}
SATURATED = {"_saturate_weight_to_fp16": [((real(3, 4) * 1e5,), {})]}
OUTSIDE = dict.fromkeys(("gradients", "gradcheck", "gradgradcheck"), "PyTorch writes outside of the graph")
OBSERVED = {
    name: [
        ((real(4, 3), on, rounds, *STATE, 0.01, 0, 255, -1), {})
        for on, rounds in ((ON, ON), (OFF, ON), (ON, OFF))
    ]
    + [((real(4, 3), ON, ON, *ROW_STATE, 0.01, -128, 127, 0, True, True), {})]
    for name in (
        "fused_moving_avg_obs_fake_quant",
        "_fused_moving_avg_obs_fq_helper",
        "ops.aten._fused_moving_avg_obs_fq_helper_functional",
    )
}
PLAIN, CHANNELS = Quantized(real(4, 3)), Quantized(real(4, 3), [0.1, 0.2, 0.5], [1, 2, 3], 1)
MADE = {
    "quantize_per_tensor": [
        ((real(4, 3), 0.5, 3, "dtype:quint8"), {}),
        ((real(4, 3), HALF, np.array([1], dtype=np.int32), "dtype:qint8"), {}),
        (([real(4), real(3)], np.array([0.5, 0.25]), np.array([1, 2]), "dtype:quint8"), {}),
    ],
    "quantize_per_tensor_dynamic": [((real(4, 3), "dtype:quint8", False), {})],
    "quantize_per_channel": [((real(4, 3), SCALES, ZEROS, 0, "dtype:qint32"), {})],
    "_make_per_tensor_quantized_tensor": [((WEIGHT, 0.5, 3), {})],
    "_make_per_channel_quantized_tensor": [((WEIGHT[:4], SCALES, ZEROS, 0), {})],
    "dequantize": [((PLAIN,), {}), (([PLAIN, CHANNELS],), {})],
    "int_repr": [((PLAIN,), {}), ((CHANNELS,), {})],
    "q_scale": [((PLAIN,), {})],
    "q_zero_point": [((PLAIN,), {})],
    "q_per_channel_scales": [((CHANNELS,), {})],
    "q_per_channel_zero_points": [((CHANNELS,), {})],
    "q_per_channel_axis": [((CHANNELS,), {})],
}
EMPTY = {
    "_empty_affine_quantized": [(([2, 3],), {"scale": 0.5, "zero_point": 3, "dtype": "dtype:quint8"})],
    "_empty_per_channel_affine_quantized": [
        (([4, 3],), {"scales": SCALES, "zero_points": ZEROS, "axis": 0, "dtype": "dtype:qint8"})
    ],
}
FOUND = dict.fromkeys(("values", "layout", "unsigned"), "memory as it is found")
QUANTIZED = dict.fromkeys(
    ("vmap", "meta", "trace", "fuzz", "device", "device_values", "gradients"),
    "integers with a scale are no plain numbers, and live on the CPU",
)


def spread(x, reduced=False):
    """The scale and zero point of what spans zero."""
    scale = (x.max() - x.min()) / (127 if reduced else 255)
    return np.array([scale, np.rint(-x.min() / scale)])


ROWS = [
    *fixed_rows(MADE, dtypes=("float32",), refused=QUANTIZED),
    *fixed_rows(EMPTY, dtypes=("float32",), refused={**QUANTIZED, **FOUND}),
    Row(
        "ops.aten._quantization_for",
        fixed([((real(4, 3),), {}), ((real(4, 3), True), {})]),
        ("float32",),
        reference=spread,
        refused={"gradients": "PyTorch gives numbers", "fuzz": "PyTorch gives numbers", "meta": "values"},
    ),
    *fixed_rows(FAKE, dtypes=("float32",), refused={**ROUNDED, **NUMBERS}),
    *fixed_rows(MASKED, dtypes=("float32", "float64")),
    *fixed_rows(LEARNED, dtypes=("float32",), refused={**ROUNDED, **NUMBERS}),
    *fixed_rows(SEARCHED, dtypes=("float32",), refused={**ROUNDED, **NUMBERS, "meta": "reads its operand"}),
    *fixed_rows(SATURATED, dtypes=("float32",), refused=OUTSIDE),
    *fixed_rows(OBSERVED, dtypes=("float32",), refused={**ROUNDED, **WRITES, **FLOAT}),
    Row(
        "_convert_weight_to_int4pack_for_cpu",
        lambda make: [Sample((np.abs(make(32, 64, low=0, high=15)), 2))],
        ("int32",),
        refused=dict.fromkeys(("values", "fuzz"), "each library packs as its own products read"),
    ),
    Row(
        "_int_mm",
        lambda make: [Sample((make(20, 8), make(8, 16))), Sample((make(17, 3), make(3, 5)))],
        ("int8",),
        refused={"fuzz": MISREAD},
    ),
    Row(
        "_weight_int8pack_mm",
        fixed([((real(3, 16) / 9, WEIGHT, np.abs(real(6)) / 9), {})]),
        ("bfloat16",),
        refused={"layout": "rows must be contiguous, in PyTorch too", "fuzz": MISREAD},
    ),
]

# Steps of quantised files, which PyTorch has no operators for.


def quantized_integers(x, scale, zero_point, dtype):
    low, high = (-128, 127) if dtype == "dtype:int8" else (0, 255)
    return np.clip(np.rint(np.float32(x) / np.float32(scale)) + zero_point, low, high)


def quantized_sum(a, a_scale, a_zero, b, b_scale, b_zero, scale, zero_point, dtype, relu=False):
    """Floats have the scale 1 and the zero point 0."""
    sums = (a - np.float64(a_zero)) * a_scale + (b - np.float64(b_zero)) * b_scale
    return quantized_integers(np.maximum(sums, 0) if relu else sums, scale, zero_point, dtype)


def quantized_conv_sum(x, x_scale, x_zero, weight, scales, zeros, bias, *rest):
    """Of filters of one pixel."""
    _stride, _padding, _dilation, _groups, y_scale, y_zero, dtype, _activation, other, *settings = rest
    filters = (weight[:, :, 0, 0] - np.float64(zeros)[:, None]) * np.float64(scales)[:, None]
    y = np.einsum("nchw,fc->nfhw", (x - np.float64(x_zero)) * x_scale, filters) + bias[:, None, None]
    q = quantized_integers(y, y_scale, y_zero, dtype)
    other_scale, other_zero, scale, zero_point, relu, _other_first = settings
    return quantized_sum(q, y_scale, y_zero, other, other_scale, other_zero, scale, zero_point, dtype, relu)


def small_linear(x, weight, scales, bias=None, group=0):
    y = np.float64(x) @ (weight * np.float64(scales)[:, None]).T
    return y if bias is None else y + bias


BYTES = [whole(3, 4, low=-100, high=100).astype(np.int8) for _ in range(2)]
IMAGE, OTHER, FILTERS = (
    whole(*sizes, low=-100, high=100).astype(np.int8) for sizes in ((1, 4, 2, 3), (1, 5, 2, 3), (5, 4, 1, 1))
)
CHANNELS = given(np.abs(real(5)) / 9), np.zeros(5, np.int64), real(5)
LAYER = (IMAGE, 0.1, 3, FILTERS, *CHANNELS, (1, 1), (0, 0), (1, 1), 1)
SMALL = (WEIGHT, given(np.abs(real(6)) / 9))
OURS_ALONE = {
    "ops.aten._quantized_integers": (
        quantized_integers,
        [((real(4, 3), 0.3, n, f"dtype:{kind}"), {}) for n, kind in ((3, "int8"), (99, "uint8"))],
    ),
    "ops.aten._quantized_sum": (
        quantized_sum,
        [
            ((BYTES[0], 0.1, 3, BYTES[1], 0.2, -4, 0.3, 9, "dtype:int8"), {}),
            ((BYTES[0], 0.1, 3, BYTES[1], 0.2, -4, 0.3, 9, "dtype:uint8", True), {}),
            ((BYTES[0], 0.1, 3, real(3, 4), 1.0, 0, 0.3, 9, "dtype:int8"), {}),
        ],
    ),
    "ops.aten._quantized_conv_sum": (
        quantized_conv_sum,
        [
            ((*LAYER, 2.5, 4, "dtype:int8", "none", OTHER, 1.5, -3, 4.5, 5, relu, not relu), {})
            for relu in (False, True)
        ],
    ),
    "ops.aten._weight_only_linear": (
        small_linear,
        [((real(3, 16), *SMALL), {}), ((real(2, 5, 16), *SMALL, real(6)), {})],
    ),
    "ops.aten._weight_only_embedding": (
        lambda weight, scales, rows: (weight * np.float32(scales)[:, None])[rows],
        [((*SMALL, np.array([[0, 5], [3, 3]])), {})],
    ),
}
OURS = dict.fromkeys(("values", "gradients", "fuzz"), "PyTorch has no such operator")
AS_IN_FILES = {"layout": "weights and scales are contiguous, as files have them"}
ROWS += [
    Row(name, fixed(calls), ("float32",), reference, refused=OURS | (AS_IN_FILES if "weight" in name else {}))
    for name, (reference, calls) in OURS_ALONE.items()
]
