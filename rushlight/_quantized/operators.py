"""`torch.ops.quantized`: quantized tensors and packed weights, by way of operators on plain ones."""

import rushlight as torch
from rushlight._quantized.packed import ConvPackedParams, LinearPackedParams, ScriptObject

__capture__ = "through"  # Note [Capture marks]


def _quantized(integers, scale, zero_point):
    return torch.ops.aten._make_per_tensor_quantized_tensor(integers, scale, zero_point)


def _held(packed, kind, who):
    held = getattr(packed, "_held", None)
    if not isinstance(held, kind):
        raise RuntimeError(f"quantized::{who}: expected a packed weight, got {type(packed).__name__}")
    return held


# --- linear layers


def linear_prepack(W, B=None):
    return ScriptObject(LinearPackedParams(W, B))


def linear_prepack_fp16(W, B=None):
    if W.dtype != torch.float32:
        raise RuntimeError(f"quantized::linear_prepack_fp16: the weight must be float32, got {W.dtype}")
    return ScriptObject(LinearPackedParams(W, B))


def linear_unpack(W_prepack):
    return _held(W_prepack, LinearPackedParams, "linear_unpack").unpack()


linear_unpack_fp16 = linear_unpack


def _dynamic(X, packed, relu, reduce_range):
    held = _held(packed, LinearPackedParams, "linear_dynamic")
    w = held.settings
    if w is None:
        raise RuntimeError("quantized::linear_dynamic: the weight was packed as float16")
    return torch.ops.aten._quantized_linear_dynamic(
        X, w.integers, w.scales, w.zero_points, held._bias, relu, reduce_range
    )


def linear_dynamic(X, W_prepack, reduce_range=False):
    return _dynamic(X, W_prepack, False, reduce_range)


def linear_relu_dynamic(X, W_prepack, reduce_range=False):
    return _dynamic(X, W_prepack, True, reduce_range)


def linear_dynamic_fp16(X, W_prepack):
    held = _held(W_prepack, LinearPackedParams, "linear_dynamic_fp16")
    weight, bias = held.unpack()
    return torch.nn.functional.linear(X, weight, bias)


def linear_relu_dynamic_fp16(X, W_prepack):
    return linear_dynamic_fp16(X, W_prepack).relu()


def _linear(X, packed, scale, zero_point, step="none", arguments=()):
    held = _held(packed, LinearPackedParams, "linear")
    w = held.settings
    zeros = w.zero_points if w.zero_points is not None else torch.zeros(1, dtype=torch.int64)
    integers = X.int_repr()
    y = torch.ops.onednn.qlinear_pointwise(
        integers,
        X.q_scale(),
        X.q_zero_point(),
        w.integers.t(),
        w.scales,
        zeros,
        held._bias,
        scale,
        zero_point,
        integers.dtype,
        step,
        list(arguments),
        "",
    )
    return _quantized(y, scale, zero_point)


def linear(X, W_prepack, Y_scale_i, Y_zero_point_i):
    return _linear(X, W_prepack, Y_scale_i, Y_zero_point_i)


def linear_relu(X, W_prepack, Y_scale_i, Y_zero_point_i):
    return _linear(X, W_prepack, Y_scale_i, Y_zero_point_i, "relu")


def linear_leaky_relu(X, W_prepack, Y_scale_i, Y_zero_point_i, negative_slope):
    return _linear(X, W_prepack, Y_scale_i, Y_zero_point_i, "leaky_relu", [negative_slope])


def linear_tanh(X, W_prepack, Y_scale_i, Y_zero_point_i):
    return _linear(X, W_prepack, Y_scale_i, Y_zero_point_i, "tanh")


# --- convolutions


def _conv_prepack(dims):
    def prepack(weight, bias, stride, padding, dilation, groups):
        if weight.dim() != dims + 2:
            raise RuntimeError(f"quantized::conv{dims}d_prepack: the weight must have {dims + 2} dimensions")
        return ScriptObject(
            ConvPackedParams(weight, bias, stride, padding, [0] * dims, dilation, groups, False)
        )

    return prepack


conv2d_prepack = conv_prepack = _conv_prepack(2)
conv3d_prepack = _conv_prepack(3)


def conv1d_prepack(weight, bias, stride, padding, dilation, groups):
    return conv2d_prepack(weight.unsqueeze(2), bias, [1, *stride], [0, *padding], [1, *dilation], groups)


def conv2d_unpack(packed_weights):
    return _held(packed_weights, ConvPackedParams, "conv_unpack").unpack()


conv_unpack = conv3d_unpack = conv2d_unpack


def conv1d_unpack(packed_weights):
    weight, bias = conv2d_unpack(packed_weights)
    return weight.squeeze(2), bias


def _conv(dims, step):
    def conv(qx, packed_weight, *rest):
        """The last two arguments are the output's scale and zero point; older programs repeat the window."""
        held = _held(packed_weight, ConvPackedParams, f"conv{dims}d")
        scale, zero_point = rest[-2:]
        w = held.settings
        zeros = w.zero_points if w.zero_points is not None else torch.zeros(1, dtype=torch.int64)
        integers = qx.int_repr()
        if dims == 1:
            integers = integers.unsqueeze(2)
        y = torch.ops.onednn.qconv_pointwise(
            integers,
            qx.q_scale(),
            qx.q_zero_point(),
            w.integers,
            w.scales,
            zeros,
            held._bias,
            held.stride(),
            held.padding(),
            held.dilation(),
            held.groups(),
            scale,
            zero_point,
            integers.dtype,
            step,
            [],
            "",
        )
        return _quantized(y.squeeze(2) if dims == 1 else y, scale, zero_point)

    return conv


conv1d, conv2d, conv3d = (_conv(dims, "none") for dims in (1, 2, 3))
conv1d_relu, conv2d_relu, conv3d_relu = (_conv(dims, "relu") for dims in (1, 2, 3))


# --- operators that compute in floats and round once


def _requantized(y, scale, zero_point, dtype):
    return torch.ops.aten.quantize_per_tensor(y, scale, zero_point, dtype)


def _binary(function, relu):
    def operator(qa, qb, scale=None, zero_point=None):
        if not (hasattr(qa, "dequantize") and hasattr(qb, "dequantize")):
            raise NotImplementedError(
                "quantized operators with a number: quantize it and give it as a tensor"
            )
        if qa.dtype != qb.dtype:
            raise RuntimeError(f"Both inputs must have one quantized dtype, got {qa.dtype} and {qb.dtype}")
        y = function(qa.dequantize(), qb.dequantize())
        return _requantized(y.relu() if relu else y, scale, zero_point, qa.dtype)

    return operator


add, add_relu = _binary(torch.add, False), _binary(torch.add, True)
mul, mul_relu = _binary(torch.mul, False), _binary(torch.mul, True)
matmul = _binary(torch.matmul, False)


def _cat(qx, dim, scale, zero_point, relu):
    first = qx[0]
    scale = first.q_scale() if scale is None else scale
    zero_point = first.q_zero_point() if zero_point is None else zero_point
    y = torch.cat([q.dequantize() for q in qx], dim)
    return _requantized(y.relu() if relu else y, scale, zero_point, first.dtype)


def cat(qx, dim, scale=None, zero_point=None):
    return _cat(qx, dim, scale, zero_point, False)


def cat_relu(qx, dim, scale=None, zero_point=None):
    return _cat(qx, dim, scale, zero_point, True)


def _unary(function):
    def operator(qx, *arguments, output_scale=None, output_zero_point=None):
        """Arguments of the function come first, then the output's scale and zero point."""
        given = list(arguments)
        if output_scale is None:
            output_scale, output_zero_point = given[-2:]
            del given[-2:]
        return _requantized(function(qx.dequantize(), *given), output_scale, output_zero_point, qx.dtype)

    return operator


hardswish = _unary(torch.nn.functional.hardswish)
sigmoid = _unary(torch.sigmoid)
softmax = _unary(torch.softmax)
prelu = _unary(lambda x, weight: torch.prelu(x, weight.dequantize()))


def layer_norm(input, normalized_shape, weight, bias, eps, output_scale, output_zero_point):
    y = torch.nn.functional.layer_norm(input.dequantize(), list(normalized_shape), weight, bias, eps)
    return _requantized(y, output_scale, output_zero_point, input.dtype)


def group_norm(input, num_groups, weight, bias, eps, output_scale, output_zero_point):
    y = torch.nn.functional.group_norm(input.dequantize(), num_groups, weight, bias, eps)
    return _requantized(y, output_scale, output_zero_point, input.dtype)


def instance_norm(input, weight, bias, eps, output_scale, output_zero_point):
    y = torch.nn.functional.instance_norm(input.dequantize(), weight=weight, bias=bias, eps=eps)
    return _requantized(y, output_scale, output_zero_point, input.dtype)


def _batch_norm(relu):
    def batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point):
        y = torch.nn.functional.batch_norm(qx.dequantize(), mean, var, weight, bias, False, 0.0, eps)
        return _requantized(y.relu() if relu else y, output_scale, output_zero_point, qx.dtype)

    return batch_norm


batch_norm = batch_norm1d = batch_norm2d = batch_norm3d = _batch_norm(False)
batch_norm_relu = batch_norm1d_relu = batch_norm2d_relu = batch_norm3d_relu = _batch_norm(True)
