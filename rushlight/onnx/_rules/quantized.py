"""Integers that stand for numbers, as QuantizeLinear and DequantizeLinear around what computes with them."""

from dataclasses import replace

import rushlight as torch
from rushlight.utils import _pytree as pytree

from .._graph import Value
from ._registry import RULES

INTEGER_RULES = set()  # those that take the integers themselves
_BOUNDS = {
    torch.uint8: (0, 255),
    torch.int8: (-128, 127),
    torch.uint16: (0, 65535),
    torch.int16: (-32768, 32767),
}
_INTEGERS = {torch.quint8: torch.uint8, torch.qint8: torch.int8}


def _rule(*names):
    def declare(function):
        for name in names:
            RULES[name] = function
            INTEGER_RULES.add(name)
        return function

    return declare


def _checked(dtype):
    if dtype not in _BOUNDS:
        raise NotImplementedError(f"onnx.export: quantised values of {dtype}; use 8 bits")
    return dtype


def _zero_point(g, zero, dtype):
    if zero is None:
        return None
    if not isinstance(zero, Value):
        return g.constant(int(zero), dtype)
    if zero.dtype != dtype and zero.name in g.known:
        return g.initializer("zero_points", g.known[zero.name].to(dtype))
    return g.cast(zero, dtype)


def _quantize(g, x, scale, zero, dtype, axis=None):
    """Both settings are values, or numbers."""
    scale, zero = g.constant(scale, torch.float32), _zero_point(g, zero, _checked(dtype))
    return g.op("QuantizeLinear", x, scale, zero, dtype=dtype, shape=x.shape, axis=axis)


def _dequantize(g, x, scale, zero, axis=None):
    scale, zero = g.constant(scale, torch.float32), _zero_point(g, zero, x.dtype)
    return g.op("DequantizeLinear", x, scale, zero, dtype=torch.float32, shape=x.shape, axis=axis)


def _within(g, q, low, high):
    """Integers within a part of their range."""
    least, most = _BOUNDS[q.dtype]
    if low > least:
        q = g.op("Max", q, int(low))
    return g.op("Min", q, int(high)) if high < most else q


def on_numbers(rule):
    """The rule of floats for operands that integers stand for, and a result that is rounded as the first."""

    def translate(g, *args, **kwargs):
        first = next(a for a in pytree.tree_leaves(args) if isinstance(a, Value) and a.quantizer)

        def floats(leaf):
            quantised = isinstance(leaf, Value) and leaf.quantizer
            return _dequantize(g, replace(leaf, quantizer=None), *leaf.quantizer) if quantised else leaf

        args, kwargs = pytree.tree_map(floats, (args, kwargs))
        out = g.out
        result = rule(g, *args, **kwargs)
        if isinstance(out, torch.Tensor) and out.is_quantized:
            return _quantize(g, result, out.q_scale(), out.q_zero_point(), first.dtype)
        return result

    return translate


# --- quantised tensors


@_rule("quantize_per_tensor")
def quantize_per_tensor(g, x, scale, zero, dtype):
    return _quantize(g, x, scale, zero, _integers(dtype))


def _integers(dtype):
    if dtype not in _INTEGERS:
        raise NotImplementedError(f"onnx.export: quantised tensors of {dtype}; use quint8 or qint8")
    return _INTEGERS[dtype]


@_rule("int_repr", "_make_per_tensor_quantized_tensor")
def same_integers(g, x, *settings):
    return replace(x, quantizer=None)


@_rule("dequantize")
def dequantize(g, x):
    return _dequantize(g, x, *x.quantizer) if x.quantizer else x


# --- steps of graphs that were quantised after export


@_rule("quantized_decomposed::quantize_per_tensor")
def quantize_step(g, x, scale, zero, low, high, dtype):
    return _within(g, _quantize(g, x, scale, zero, dtype), low, high)


@_rule("quantized_decomposed::dequantize_per_tensor")
def dequantize_step(g, x, scale, zero, low, high, dtype, *, out_dtype=None):
    return g.cast(_dequantize(g, x, scale, zero), out_dtype or torch.float32)


@_rule("quantized_decomposed::quantize_per_channel")
def quantize_channels(g, x, scales, zeros, axis, low, high, dtype):
    return _within(g, _quantize(g, x, scales, zeros, dtype, axis), low, high)


@_rule("quantized_decomposed::dequantize_per_channel")
def dequantize_channels(g, x, scales, zeros, axis, low, high, dtype, *, out_dtype=None):
    return g.cast(_dequantize(g, x, scales, zeros, axis), out_dtype or torch.float32)


# --- layers of integers

_STEPS = {
    "none": lambda g, y, a: y,
    "relu": lambda g, y, a: g.op("Relu", y),
    "leaky_relu": lambda g, y, a: g.op("LeakyRelu", y, alpha=float(a[0])),
    "hardtanh": lambda g, y, a: g.op("Clip", y, float(a[0]), float(a[1])),
    "tanh": lambda g, y, a: g.op("Tanh", y),
    "sigmoid": lambda g, y, a: g.op("Sigmoid", y),
    "hardswish": lambda g, y, a: g.op("HardSwish", y),
}


def _settings(g, scales, zeros, axis):
    """Scales and zero points of a weight; one for all as numbers without a dimension."""
    if scales.name not in g.known or zeros.name not in g.known:
        raise NotImplementedError("onnx.export: a quantised layer whose weight is not fixed")
    scales, zeros = g.known[scales.name], g.known[zeros.name].to(torch.int8)
    if scales.numel() == 1:
        scales, zeros, axis = scales.reshape(()), zeros.reshape(-1)[0], None
    return g.initializer("scales", scales), g.initializer("zero_points", zeros.expand(scales.shape)), axis


def _finished(g, y, scale, zero, dtype, step, arguments):
    if step not in _STEPS:
        raise NotImplementedError(f"onnx.export: a quantised layer followed by {step}")
    y = _STEPS[step](g, y, arguments)
    return _quantize(g, y, scale, zero, dtype) if dtype in _BOUNDS else g.cast(y, dtype)


@_rule("onednn::qconv_pointwise", "onednn::qconv1d_pointwise", "onednn::qconv2d_pointwise")
def qconv(g, x, scale, zero, weight, w_scale, w_zero, bias, stride, padding, dilation, groups, *rest):
    out_scale, out_zero, dtype, step, arguments, _ = rest
    scales, zeros, axis = _settings(g, w_scale, w_zero, 0)
    image, filters = _dequantize(g, x, scale, zero), _dequantize(g, weight, scales, zeros, axis)
    window = stride, padding, dilation, False, [0], groups
    y = RULES["convolution"](g, image, filters, bias, *window)
    return _finished(g, y, out_scale, out_zero, dtype or x.dtype, step, arguments)


@_rule("onednn::qlinear_pointwise")
def qlinear(g, x, scale, zero, weight, w_scale, w_zero, bias, *rest):
    out_scale, out_zero, dtype, step, arguments, _ = rest
    scales, zeros, axis = _settings(g, w_scale, w_zero, 1)
    matrix = _dequantize(g, weight, scales, zeros, axis)
    y = g.op("MatMul", _dequantize(g, x, scale, zero), matrix, shape=g.out.shape)
    y = y if bias is None else g.op("Add", y, bias)
    return _finished(g, y, out_scale, out_zero, dtype or x.dtype, step, arguments)


@_rule("_quantized_linear_dynamic")
def linear_dynamic(g, x, weight, scales, zeros, bias, relu=False, reduce_range=False):
    """The range of the input decides how it is rounded; DynamicQuantizeLinear has no range of 7 bits."""
    most = 127.0 if reduce_range else 255.0
    low = g.op("Min", g.op("ReduceMin", x, keepdims=0, shape=()), 0.0)
    high = g.op("Max", g.op("ReduceMax", x, keepdims=0, shape=()), 0.0)
    span = g.op("Div", g.op("Sub", high, low), most)
    scale = g.op("Max", span, 2.0**-23)
    zero = g.op("Clip", g.op("Round", g.op("Neg", g.op("Div", low, scale))), 0.0, most)
    rounded = _dequantize(g, _quantize(g, x, scale, zero, torch.uint8), scale, zero)
    if zeros is None:
        zeros = g.constant(torch.zeros(scales.shape, dtype=torch.int8))
    scales, zeros, axis = _settings(g, scales, zeros, 0)
    matrix = g.op("Transpose", _dequantize(g, weight, scales, zeros, axis), perm=[1, 0])
    y = g.op("MatMul", rounded, matrix, shape=g.out.shape)
    y = y if bias is None else g.op("Add", y, bias)
    return g.op("Relu", y) if relu else y


# --- quantised tensors of scales of their own


def _arithmetic(name, relu):
    """The operator on numbers; results have the scale that the call says, or the first operand's."""

    def translate(g, a, b, scale=None, zero=None):
        a_number, b_number = (_dequantize(g, x, *x.quantizer) for x in (a, b))
        y = g.op(name, a_number, b_number)
        y = g.op("Relu", y) if relu else y
        default = a.quantizer
        return _quantize(
            g, y, default[0] if scale is None else scale, default[1] if zero is None else zero, a.dtype
        )

    return translate


def _joined(relu):
    def translate(g, parts, dim, scale=None, zero=None):
        numbers = [_dequantize(g, part, *part.quantizer) for part in parts]
        y = g.op("Concat", *numbers, axis=dim)
        y = g.op("Relu", y) if relu else y
        default = parts[0].quantizer
        scale, zero = default[0] if scale is None else scale, default[1] if zero is None else zero
        return _quantize(g, y, scale, zero, parts[0].dtype)

    return translate


for _suffix, _relu in (("", False), ("_relu", True)):
    _rule(f"quantized::add{_suffix}")(_arithmetic("Add", _relu))
    _rule(f"quantized::mul{_suffix}")(_arithmetic("Mul", _relu))
    _rule(f"quantized::cat{_suffix}")(_joined(_relu))
_rule("quantized::matmul")(_arithmetic("MatMul", False))
