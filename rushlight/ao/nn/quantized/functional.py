"""Functions of integer tensors."""

import warnings

import rushlight
from rushlight.nn import functional as F

from .modules.utils import _ntuple_from_first

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool2d",
    "avg_pool3d",
    "celu",
    "clamp",
    "conv1d",
    "conv2d",
    "conv3d",
    "elu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "interpolate",
    "leaky_relu",
    "linear",
    "max_pool1d",
    "max_pool2d",
    "threshold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


def _check(input, name):
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """Means of windows; the scale stays the operand's."""
    _check(input, "avg_pool2d")
    return F.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """Means of windows; the scale stays the operand's."""
    _check(input, "avg_pool3d")
    return F.avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool2d(input, output_size):
    """Means of windows that give this size; the scale stays the operand's."""
    _check(input, "functional.adaptive_avg_pool2d")
    return F.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input, output_size):
    """Means of windows that give this size; the scale stays the operand's."""
    _check(input, "functional.adaptive_avg_pool3d")
    return F.adaptive_avg_pool3d(input, output_size)


def _conv(
    dims, input, weight, bias, stride, padding, dilation, groups, padding_mode, scale, zero_point, dtype
):
    if padding_mode != "zeros":
        raise NotImplementedError("Only zero-padding is supported!")
    if input.dtype != rushlight.quint8:
        raise NotImplementedError("Only torch.quint8 is supported for activation tensor!")
    if weight.dtype != rushlight.qint8:
        raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
    if input.ndim != dims + 2:
        raise ValueError(f"Input tensor must be {dims}D, got {input.ndim}D.")
    each = _ntuple_from_first(dims)
    operators = rushlight.ops.quantized
    packed = getattr(operators, f"conv{dims}d_prepack")(
        weight, bias, each(stride), each(padding), each(dilation), groups
    )
    return getattr(operators, f"conv{dims}d")(input, packed, scale, zero_point)


def conv1d(
    input,
    weight,
    bias,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    padding_mode="zeros",
    scale=1.0,
    zero_point=0,
    dtype=rushlight.quint8,
):
    """The convolution of integers, with this scale of results."""
    return _conv(
        1, input, weight, bias, stride, padding, dilation, groups, padding_mode, scale, zero_point, dtype
    )


def conv2d(
    input,
    weight,
    bias,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    padding_mode="zeros",
    scale=1.0,
    zero_point=0,
    dtype=rushlight.quint8,
):
    """The convolution of integers, with this scale of results."""
    return _conv(
        2, input, weight, bias, stride, padding, dilation, groups, padding_mode, scale, zero_point, dtype
    )


def conv3d(
    input,
    weight,
    bias,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    padding_mode="zeros",
    scale=1.0,
    zero_point=0,
    dtype=rushlight.quint8,
):
    """The convolution of integers, with this scale of results."""
    return _conv(
        3, input, weight, bias, stride, padding, dilation, groups, padding_mode, scale, zero_point, dtype
    )


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The image at another size; the scale stays the operand's."""
    _check(input, "interpolate")
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def linear(input, weight, bias=None, scale=None, zero_point=None):
    """The product by a weight; the operand's scale where none is given."""
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    packed = rushlight.ops.quantized.linear_prepack(weight, bias)
    return rushlight.ops.quantized.linear(input, packed, scale, zero_point)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Greatest numbers of windows."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    stride = [] if stride is None else stride
    return F.max_pool1d(input, kernel_size, stride or None, padding, dilation, ceil_mode=ceil_mode)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Greatest numbers of windows."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool2d(input, kernel_size, stride or None, padding, dilation, ceil_mode=ceil_mode)


def celu(input, scale, zero_point, alpha=1.0):
    """CELU, with this scale of results."""
    _check(input, "celu")
    return rushlight.ops.quantized.celu(input, scale, zero_point, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False, scale=None, zero_point=None):
    """LeakyReLU, with this scale of results or the operand's."""
    if scale is not None and zero_point is not None:
        if inplace:
            raise AssertionError("Cannot rescale with `inplace`")
        return rushlight.ops.quantized.leaky_relu(input, negative_slope, inplace, scale, zero_point)
    return (rushlight._C._nn.leaky_relu_ if inplace else rushlight._C._nn.leaky_relu)(input, negative_slope)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """Numbers held within bounds; the scale stays the operand's."""
    _check(input, "hardtanh")
    return F.hardtanh(input, min_val, max_val, inplace)


def hardswish(input, scale, zero_point):
    """Hardswish, with this scale of results."""
    _check(input, "hardswish")
    return rushlight.ops.quantized.hardswish(input, scale, zero_point)


def threshold(input, threshold, value):
    """Numbers above a threshold; a value for the others."""
    _check(input, "threshold")
    if threshold is None:
        raise ValueError("Input to 'threshold' must be specified!")
    if value is None:
        raise ValueError("Input to 'value' must be specified!")
    return F.threshold(input, threshold, value)


def elu(input, scale, zero_point, alpha=1.0):
    """ELU, with this scale of results."""
    _check(input, "elu")
    return rushlight.ops.quantized.elu(input, scale, zero_point, alpha)


def hardsigmoid(input, inplace=False):
    """Hardsigmoid, with the scale 1/256."""
    _check(input, "hardsigmoid")
    return F.hardsigmoid(input, inplace)


def clamp(input, min_, max_):
    """Numbers held within bounds."""
    _check(input, "clamp")
    return rushlight.clamp(input, min_, max_)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The older name of ``interpolate``."""
    warnings.warn(
        "nn.quantized.functional.upsample is deprecated. Use nn.quantized.functional.interpolate instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input, size=None, scale_factor=None):
    """The older name of ``interpolate`` by straight lines."""
    warnings.warn(
        "nn.quantized.functional.upsample_bilinear is deprecated. Use "
        "nn.quantized.functional.interpolate instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def upsample_nearest(input, size=None, scale_factor=None):
    """The older name of ``interpolate`` by nearest neighbours."""
    warnings.warn(
        "nn.quantized.functional.upsample_nearest is deprecated. Use "
        "nn.quantized.functional.interpolate instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")
