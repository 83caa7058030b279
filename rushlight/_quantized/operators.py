"""`torch.ops.quantized`: quantized tensors and packed weights, by way of operators on plain ones."""

import functools

import rushlight as torch
from rushlight._command.names import own_name
from rushlight._quantized.embedding import *  # noqa: F403
from rushlight._quantized.packed import ConvPackedParams, LinearPackedParams, ScriptObject
from rushlight._quantized.packed import held as _held
from rushlight._quantized.recurrent import *  # noqa: F403
from rushlight.fx.proxy import Proxy

_HOMES = tuple(f"rushlight._quantized.{name}" for name in ("operators", "embedding", "recurrent"))
__capture__ = "through"  # Note [Capture marks]


def _quantized(integers, scale, zero_point):
    return torch.ops.aten._make_per_tensor_quantized_tensor(integers, scale, zero_point)


# --- linear layers


def linear_prepack(W, B=None):
    return ScriptObject(LinearPackedParams(W, B))


def linear_prepack_fp16(W, B=None):
    if W.dtype not in (torch.float32, torch.float16):
        raise RuntimeError(
            f"quantized::linear_prepack_fp16: the weight must be float32 or float16, got {W.dtype}"
        )
    return ScriptObject(LinearPackedParams(W.float(), B))


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
    scale, zero_point = float(scale), int(zero_point)
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


def linear_dynamic_fp16_unpacked_weight(X, weight, bias):
    return linear_dynamic_fp16(X, linear_prepack_fp16(weight, bias))


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


def _transpose_prepack(dims):
    def prepack(weight, bias, stride, padding, output_padding, dilation, groups):
        if weight.dim() != dims + 2:
            raise RuntimeError(
                f"quantized::conv_transpose{dims}d_prepack: the weight must have {dims + 2} dimensions"
            )
        return ScriptObject(
            ConvPackedParams(weight, bias, stride, padding, output_padding, dilation, groups, True)
        )

    return prepack


conv_transpose2d_prepack, conv_transpose3d_prepack = _transpose_prepack(2), _transpose_prepack(3)


def conv_transpose1d_prepack(weight, bias, stride, padding, output_padding, dilation, groups):
    return conv_transpose2d_prepack(
        weight.unsqueeze(2),
        bias,
        [1, *stride],
        [0, *padding],
        [0, *output_padding],
        [1, *dilation],
        groups,
    )


def conv2d_unpack(packed_weights):
    return _held(packed_weights, ConvPackedParams, "conv_unpack").unpack()


conv_unpack = conv3d_unpack = conv_transpose2d_unpack = conv_transpose3d_unpack = conv2d_unpack


def conv1d_unpack(packed_weights):
    weight, bias = conv2d_unpack(packed_weights)
    return weight.squeeze(2), bias


conv_transpose1d_unpack = conv1d_unpack


def _convolved(integers, x_scale, x_zero, held, weight, window, scale, zero_point, step):
    """Integers of the result. Images of one dimension have a second of size 1 before it."""
    w = held.settings
    zeros = w.zero_points if w.zero_points is not None else torch.zeros(1, dtype=torch.int64)
    return torch.ops.onednn.qconv_pointwise(
        integers,
        x_scale,
        x_zero,
        weight,
        w.scales,
        zeros,
        held._bias,
        *window,
        held.groups(),
        scale,
        zero_point,
        integers.dtype,
        step,
        [],
        "",
    )


def _integers(held, dims, integers, x_scale, x_zero, scale, zero_point, step="none"):
    if dims == 1:
        integers = integers.unsqueeze(2)
    window, weight = (held.stride(), held.padding(), held.dilation()), held.settings.integers
    if held.transpose():
        integers, weight, window = transposed(held, integers, x_zero)
    y = _convolved(integers, x_scale, x_zero, held, weight, window, scale, zero_point, step)
    return y.squeeze(2) if dims == 1 else y


def transposed(held, x, zero_point):
    """A transposed convolution as a plain one: its image has the operand's elements a stride apart."""
    weight, groups = held.settings.integers, held.groups()
    dims, inner = weight.dim() - 2, weight.shape[1]
    weight = weight.reshape(groups, weight.shape[0] // groups, inner, *weight.shape[2:]).transpose(1, 2)
    weight = weight.reshape(groups * inner, -1, *weight.shape[3:]).flip(list(range(2, dims + 2)))
    stride = held.stride()
    if any(step > 1 for step in stride):
        sizes = [(size - 1) * step + 1 for size, step in zip(x.shape[2:], stride)]
        apart = torch.full([*x.shape[:2], *sizes], zero_point, dtype=x.dtype)
        places = (slice(None), slice(None), *(slice(None, None, step) for step in stride))
        apart[places] = x
        x = apart
    borders = []
    for d in reversed(range(dims)):
        border = held.dilation()[d] * (held.settings.integers.shape[d + 2] - 1) - held.padding()[d]
        borders += [border, border + held.output_padding()[d]]
    x = torch.ops.aten.constant_pad_nd(x, borders, zero_point)
    return x, weight.contiguous(), ([1] * dims, [0] * dims, held.dilation())


def _conv(dims, step, kind=""):
    name = f"conv{kind}{dims}d"

    def conv(qx, packed_weight, *rest, output_scale=None, output_zero_point=None):
        """The last two arguments are the output's scale and zero point; older programs repeat the window."""
        held = _held(packed_weight, ConvPackedParams, name)
        if output_scale is None:
            output_scale, output_zero_point = rest[-2:]
        scale, zero_point = float(output_scale), int(output_zero_point)
        integers = qx.int_repr()
        y = _integers(held, dims, integers, qx.q_scale(), qx.q_zero_point(), scale, zero_point, step)
        return _quantized(y, scale, zero_point)

    return conv


def _conv_dynamic(dims, kind=""):
    name = f"conv{kind}{dims}d_dynamic"

    def conv_dynamic(qx, packed_weight, reduce_range=False):
        """Numbers in and out; the result has the range of the operand, as PyTorch's."""
        held = _held(packed_weight, ConvPackedParams, name)
        q = torch.quantize_per_tensor_dynamic(qx, torch.quint8, reduce_range)
        scale, zero_point = q.q_scale(), q.q_zero_point()
        y = _integers(held, dims, q.int_repr(), scale, zero_point, scale, zero_point)
        return _quantized(y, scale, zero_point).dequantize()

    return conv_dynamic


def _conv_add(step):
    def conv_add(qx, qaccum, packed_weight, output_scale, output_zero_point):
        held = _held(packed_weight, ConvPackedParams, "conv2d_add")
        w = held.settings
        zeros = w.zero_points if w.zero_points is not None else torch.zeros(1, dtype=torch.int64)
        integers = qx.int_repr()
        y = torch.ops.onednn.qconv2d_pointwise.binary(
            integers,
            qx.q_scale(),
            qx.q_zero_point(),
            w.integers,
            w.scales,
            zeros,
            qaccum.int_repr(),
            held._bias,
            held.stride(),
            held.padding(),
            held.dilation(),
            held.groups(),
            float(output_scale),
            int(output_zero_point),
            integers.dtype,
            qaccum.q_scale(),
            qaccum.q_zero_point(),
            "add",
            1.0,
            step,
            [],
            "",
        )
        return _quantized(y, float(output_scale), int(output_zero_point))

    return conv_add


conv2d_add, conv2d_add_relu = _conv_add("none"), _conv_add("relu")


conv1d, conv2d, conv3d = (_conv(dims, "none") for dims in (1, 2, 3))
conv1d_relu, conv2d_relu, conv3d_relu = (_conv(dims, "relu") for dims in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_conv(n, "none", "_transpose") for n in (1, 2, 3))
conv1d_dynamic, conv2d_dynamic, conv3d_dynamic = (_conv_dynamic(dims) for dims in (1, 2, 3))
conv_transpose1d_dynamic, conv_transpose2d_dynamic, conv_transpose3d_dynamic = (
    _conv_dynamic(dims, "_transpose") for dims in (1, 2, 3)
)


def _of_window(name):
    def read(packed_weights):
        return getattr(_held(packed_weights, ConvPackedParams, name), name)()

    return read


conv2d_stride = conv3d_stride = conv_transpose2d_stride = conv_transpose3d_stride = _of_window("stride")
conv2d_padding = conv3d_padding = conv_transpose2d_padding = conv_transpose3d_padding = _of_window("padding")
conv2d_dilation = conv3d_dilation = _of_window("dilation")
conv_transpose2d_dilation = conv_transpose3d_dilation = conv2d_dilation
conv2d_groups = conv3d_groups = conv_transpose2d_groups = conv_transpose3d_groups = _of_window("groups")
conv2d_transpose = conv3d_transpose = _of_window("transpose")
conv_transpose2d_transpose = conv_transpose3d_transpose = conv2d_transpose
conv_transpose2d_output_padding = conv_transpose3d_output_padding = _of_window("output_padding")


def conv2d_unpack_sizes(packed_weights):
    return list(conv2d_unpack(packed_weights)[0].shape)


def _traceable(function):
    """A trace records an operator of this table as one call, not the steps that it takes here."""

    @functools.wraps(function)
    def operator(*args, **kwargs):
        from rushlight.jit._decorations import _tracing  # jit is above: its archives hold packed weights

        recorder = getattr(_tracing, "recorder", None)
        if recorder is not None:
            return recorder.call_of_operator(operator, function, args, kwargs)
        for value in args or kwargs.values():
            for part in value if type(value) in (list, tuple) else (value,):
                if isinstance(part, Proxy):
                    return Proxy.__torch_function__(operator, (Proxy,), args, kwargs)
        return function(*args, **kwargs)

    return operator


# Graphs show and find these functions under their public names; some were made by others.
_made: dict = {}
for _name, _value in list(globals().items()):
    if (
        own_name(getattr(_value, "__module__", None) or "") in _HOMES
        and not isinstance(_value, type)
        and _name[0] != "_"
    ):
        if globals().get(_value.__name__) is not _value:
            _value.__name__ = _value.__qualname__ = _name
        _value.__module__ = "rushlight.ops.quantized"
        _made[id(_value)] = _traceable(_value)
for _name, _value in list(globals().items()):
    if _name[0] != "_" and id(_value) in _made:
        globals()[_name] = _made[id(_value)]
