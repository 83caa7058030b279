"""What each ONNX operator computes, as functions `(module, attributes, *inputs)` by its name.

Inputs are tensors, `Constant`s, or None for what is left out; sizes that a graph computes are NumPy arrays.
"""

import numpy as np

import rushlight as torch

F = torch.nn.functional
OPERATORS: dict = {}
_DTYPES = {
    1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64,
    9: torch.bool, 10: torch.float16, 11: torch.float64, 16: torch.bfloat16,
}  # fmt: skip


class UnsupportedOnnxError(NotImplementedError):
    """What of a file is not read."""


def _reader(*names):
    def declare(function):
        for name in names:
            OPERATORS[name] = function
        return function

    return declare


def _t(value):
    """As a tensor to compute with."""
    if value is None or isinstance(value, torch.Tensor):
        return value
    return torch.from_numpy(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value.tensor


def _numbers(value, what):
    """As an array whose numbers are known."""
    if isinstance(value, np.ndarray) or value is None:
        return value
    if isinstance(value, torch.Tensor):
        raise UnsupportedOnnxError(f"onnx.load: {what} that depend on the input are not read")
    return value.array


def _known(*values):
    return all(v is None or isinstance(v, np.ndarray) or not isinstance(v, torch.Tensor) for v in values)


def _ints(value, what):
    found = _numbers(value, what)
    return None if found is None else [int(n) for n in found.reshape(-1)]


# --- element by element


def _elementwise(function, on_arrays=None):
    def read(module, a, *inputs):
        if on_arrays and _known(*inputs):
            return on_arrays(*(_numbers(v, "sizes") for v in inputs))
        return function(*map(_t, inputs))

    return read


def _quotient(a, b):
    if not a.is_floating_point():
        return torch.div(a, b, rounding_mode="trunc")
    return a / b


def _array_quotient(a, b):
    return a // b if np.issubdtype(a.dtype, np.integer) else a / b


for _name, _function, _arrays in (
    ("Add", torch.add, np.add),
    ("Sub", torch.sub, np.subtract),
    ("Mul", torch.mul, np.multiply),
    ("Div", _quotient, _array_quotient),
    ("Mod", torch.remainder, np.mod),
    ("Pow", torch.pow, None),
    ("Relu", F.relu, None),
    ("Sigmoid", torch.sigmoid, None),
    ("Tanh", torch.tanh, None),
    ("Exp", torch.exp, None),
    ("Log", torch.log, None),
    ("Sqrt", torch.sqrt, None),
    ("Erf", torch.erf, None),
    ("Abs", torch.abs, None),
    ("Neg", torch.neg, np.negative),
    ("Round", torch.round, None),
    ("Reciprocal", torch.reciprocal, None),
    ("HardSwish", F.hardswish, None),
    ("Softplus", F.softplus, None),
    ("Where", torch.where, None),
    ("Equal", torch.eq, None),
    ("MatMul", torch.matmul, None),
):
    OPERATORS[_name] = _elementwise(_function, _arrays)


def _fold(function):
    def read(module, a, *inputs):
        result = _t(inputs[0])
        for value in inputs[1:]:
            result = function(result, _t(value))
        return result

    return read


OPERATORS["Min"], OPERATORS["Max"] = _fold(torch.minimum), _fold(torch.maximum)


@_reader("Identity", "Dropout")
def identity(module, a, x, *rest):
    return x


@_reader("Constant")
def constant(module, a):
    return a["value"]


@_reader("Clip")
def clip(module, a, x, low=None, high=None):
    low, high = _numbers(low, "bounds"), _numbers(high, "bounds")
    least = a.get("min", -np.inf) if low is None else low.item()
    most = a.get("max", np.inf) if high is None else high.item()
    return F.hardtanh(_t(x), least, most) if _t(x).is_floating_point() else torch.clamp(_t(x), least, most)


@_reader("LeakyRelu")
def leaky_relu(module, a, x):
    return F.leaky_relu(_t(x), a.get("alpha", 0.01))


@_reader("HardSigmoid")
def hard_sigmoid(module, a, x):
    return torch.clamp(_t(x) * a.get("alpha", 0.2) + a.get("beta", 0.5), 0, 1)


@_reader("Elu")
def elu(module, a, x):
    return F.elu(_t(x), a.get("alpha", 1.0))


@_reader("Gelu")
def gelu(module, a, x):
    return F.gelu(_t(x), approximate=a.get("approximate", "none"))


@_reader("Cast")
def cast(module, a, x):
    if a["to"] not in _DTYPES:
        raise UnsupportedOnnxError(f"onnx.load: Cast to the type {a['to']}")
    dtype = _DTYPES[a["to"]]
    if isinstance(x, np.ndarray):
        return x.astype(str(dtype)[6:])
    return _t(x).to(dtype)


# --- layers


def _each(value, n, default):
    return [default] * n if value is None else [int(v) for v in value]


def _padding(a, spatial, x, value=0.0):
    """(the padding of both sides, x padded by hand where they differ)."""
    if a.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise UnsupportedOnnxError(f"onnx.load: auto_pad={a['auto_pad']}")
    pads = _each(a.get("pads"), 2 * spatial, 0)
    begin, end = pads[:spatial], pads[spatial:]
    if begin == end:
        return begin, x
    sides = [n for pair in zip(reversed(begin), reversed(end)) for n in pair]
    return [0] * spatial, F.pad(x, sides, value=value)


@_reader("Conv")
def conv(module, a, x, weight, bias=None):
    x, weight = _t(x), _t(weight)
    spatial = weight.dim() - 2
    padding, x = _padding(a, spatial, x)
    function = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[spatial]
    strides, dilations = _each(a.get("strides"), spatial, 1), _each(a.get("dilations"), spatial, 1)
    return function(x, weight, _t(bias), strides, padding, dilations, a.get("group", 1))


@_reader("Gemm")
def gemm(module, a, x, weight, bias=None):
    x, weight = _t(x), _t(weight)
    x = x.t() if a.get("transA", 0) else x
    alpha, beta = a.get("alpha", 1.0), a.get("beta", 1.0)
    plain = alpha == 1 and (bias is None or beta == 1)
    if a.get("transB", 0) and plain and (bias is None or _t(bias).dim() == 1):
        return F.linear(x, weight, _t(bias))
    product = torch.mm(x, weight.t() if a.get("transB", 0) else weight)
    product = product if alpha == 1 else product * alpha
    return product if bias is None else product + (_t(bias) if beta == 1 else _t(bias) * beta)


@_reader("BatchNormalization")
def batch_norm(module, a, x, weight, bias, mean, var):
    eps = a.get("epsilon", 1e-5)
    return F.batch_norm(_t(x), _t(mean), _t(var), _t(weight), _t(bias), False, 0.0, eps)


@_reader("LayerNormalization")
def layer_norm(module, a, x, weight, bias=None):
    x = _t(x)
    axis = a.get("axis", -1)
    return F.layer_norm(x, x.shape[axis:], _t(weight), _t(bias), a.get("epsilon", 1e-5))


@_reader("MaxPool")
def max_pool(module, a, x):
    x, kernel = _t(x), [int(n) for n in a["kernel_shape"]]
    spatial = len(kernel)
    least = -torch.inf if x.is_floating_point() else torch.iinfo(x.dtype).min
    padding, x = _padding(a, spatial, x, least)
    function = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[spatial]
    strides, dilations = _each(a.get("strides"), spatial, 1), _each(a.get("dilations"), spatial, 1)
    return function(x, kernel, strides, padding, dilations, bool(a.get("ceil_mode", 0)))


@_reader("AveragePool")
def average_pool(module, a, x):
    kernel = [int(n) for n in a["kernel_shape"]]
    spatial, counts = len(kernel), bool(a.get("count_include_pad", 0))
    padding, padded = _padding(a, spatial, _t(x))
    if padded is not x and not counts and padded.shape != _t(x).shape:
        raise UnsupportedOnnxError("onnx.load: AveragePool with pads that differ by side")
    function = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[spatial]
    strides = _each(a.get("strides"), spatial, 1)
    return function(padded, kernel, strides, padding, bool(a.get("ceil_mode", 0)), counts)


@_reader("GlobalAveragePool")
def global_average(module, a, x):
    x = _t(x)
    return x.mean(tuple(range(2, x.dim())), keepdim=True)


@_reader("Softmax")
def softmax(module, a, x):
    return torch.softmax(_t(x), a.get("axis", -1))


# --- sizes and places


@_reader("Shape")
def shape(module, a, x):
    sizes = _numbers(x, "").shape if _known(x) else x.shape
    return np.array(list(sizes)[a.get("start", 0) : a.get("end")], "i8")


@_reader("Flatten")
def flatten(module, a, x):
    x, axis = _t(x), a.get("axis", 1)
    return (
        x.reshape(1, -1) if axis == 0 else x.flatten(axis).flatten(0, axis - 1) if axis > 1 else x.flatten(1)
    )


@_reader("Reshape")
def reshape(module, a, x, sizes):
    x, wanted = _t(x), _ints(sizes, "sizes")
    if not a.get("allowzero", 0):
        wanted = [x.shape[i] if n == 0 else n for i, n in enumerate(wanted)]
    return x.reshape(wanted)


@_reader("Transpose")
def transpose(module, a, x):
    x = _t(x)
    order = a.get("perm")
    if x.dim() == 2 and (order is None or list(order) == [1, 0]):
        return x.t()
    return x.permute(*(order if order is not None else range(x.dim() - 1, -1, -1)))


def _axes(module, a, axes):
    return a.get("axes") if axes is None else _ints(axes, "axes")


@_reader("Unsqueeze")
def unsqueeze(module, a, x, axes=None):
    axes = _axes(module, a, axes)
    if _known(x):
        return np.expand_dims(_numbers(x, ""), tuple(axes))
    rank = x.dim() + len(axes)
    for axis in sorted(n % rank for n in axes):
        x = x.unsqueeze(axis)
    return x


@_reader("Squeeze")
def squeeze(module, a, x, axes=None):
    axes = _axes(module, a, axes)
    if _known(x):
        return np.squeeze(_numbers(x, ""), None if axes is None else tuple(axes))
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


@_reader("Concat")
def concat(module, a, *parts):
    if _known(*parts):
        return np.concatenate([_numbers(p, "") for p in parts], a["axis"])
    return torch.cat([_t(p) for p in parts], a["axis"])


@_reader("Gather")
def gather(module, a, x, indices):
    axis = a.get("axis", 0)
    if _known(x, indices):
        return np.asarray(np.take(_numbers(x, ""), _numbers(indices, ""), axis))
    x, places = _t(x), _t(indices)
    if axis == 0 and x.dim() == 2 and isinstance(indices, torch.Tensor):
        return F.embedding(places, x)
    picked = x.index_select(axis, places.reshape(-1).long())
    return picked.reshape(*x.shape[:axis], *places.shape, *x.shape[axis % x.dim() + 1 :])


@_reader("Slice")
def slice_(module, a, x, starts=None, ends=None, axes=None, steps=None):
    begin = _ints(starts, "starts") if starts is not None else a["starts"]
    end = _ints(ends, "ends") if ends is not None else a["ends"]
    axes = _ints(axes, "axes") if axes is not None else a.get("axes", range(len(begin)))
    steps = _ints(steps, "steps") if steps is not None else [1] * len(begin)
    known = _known(x)
    x = _numbers(x, "") if known else x
    for b, e, axis, step in zip(begin, end, axes, steps):
        if step < 1 and not known:
            raise UnsupportedOnnxError("onnx.load: Slice backwards")
        where = [slice(None)] * (axis % (x.ndim if known else x.dim())) + [slice(b, e, step)]
        x = x[tuple(where)]
    return x


@_reader("Split")
def split(module, a, x, sizes=None):
    x, axis = _t(x), a.get("axis", 0)
    parts = _ints(sizes, "sizes") or a.get("split")
    if parts is None:
        parts = -(-x.shape[axis] // a["num_outputs"])
    return list(torch.split(x, parts, axis))


@_reader("Expand")
def expand(module, a, x, sizes):
    x, wanted = _t(x), _ints(sizes, "sizes")
    return x.expand(torch.broadcast_shapes(tuple(x.shape), tuple(wanted)))


@_reader("Pad")
def pad(module, a, x, pads=None, value=None, axes=None):
    x = _t(x)
    given = _ints(pads, "pads") if pads is not None else a["pads"]
    if a.get("mode", "constant") != "constant" or axes is not None:
        raise UnsupportedOnnxError("onnx.load: Pad other than by a constant of all dimensions")
    n = len(given) // 2
    sides = [v for i in reversed(range(n)) for v in (given[i], given[n + i])]
    number = a.get("value", 0.0) if value is None else _numbers(value, "").item()
    return F.pad(x, sides, value=number)


def _reduce(function):
    def read(module, a, x, axes=None):
        x, axes = _t(x), _axes(module, a, axes)
        axes = tuple(range(x.dim())) if axes is None else tuple(axes)
        return function(x, axes, keepdim=bool(a.get("keepdims", 1)))

    return read


OPERATORS["ReduceMean"], OPERATORS["ReduceSum"] = _reduce(torch.mean), _reduce(torch.sum)
OPERATORS["ReduceMax"], OPERATORS["ReduceMin"] = _reduce(torch.amax), _reduce(torch.amin)


# --- integers that stand for numbers

steps = torch.ops.quantized_decomposed
_BOUNDS = {"uint8": (0, 255), "int8": (-128, 127)}


def _settings(x, scale, zero, what):
    """(dtype, bounds, scales, zero points) whose numbers are known."""
    scales = _numbers(scale, "scales")
    if not np.isfinite(scales).all() or (scales <= 0).any():
        raise ValueError(f"onnx.load: {what} has a scale that is zero, negative, NaN or infinite")
    zeros = _numbers(zero, "zero points")
    return scales, zeros


def _dtype_of(a, zero, what):
    name = "uint8" if zero is None else str(zero.dtype)
    if a.get("output_dtype"):
        name = str(_DTYPES.get(a["output_dtype"]))[6:]
    if name not in _BOUNDS:
        raise UnsupportedOnnxError(f"onnx.load: {what} of {name}; 8 bits are read")
    return getattr(torch, name), _BOUNDS[name]


@_reader("QuantizeLinear", "com.microsoft.QuantizeLinear")
def quantize(module, a, x, scale, zero=None):
    if isinstance(scale, torch.Tensor):
        return _quantize_by_input(_t(x), scale, zero)
    scales, zeros = _settings(x, scale, zero, "QuantizeLinear")
    dtype, bounds = _dtype_of(a, zeros, "QuantizeLinear")
    if scales.size == 1:
        number = 0 if zeros is None else int(zeros.reshape(-1)[0])
        return steps.quantize_per_tensor(_t(x), float(scales.reshape(-1)[0]), number, *bounds, dtype)
    points = torch.zeros(scales.size, dtype=torch.int64) if zeros is None else _t(zero).long()
    return steps.quantize_per_channel(_t(x), _t(scale), points, a.get("axis", 1), *bounds, dtype)


def _quantize_by_input(x, scale, zero):
    dtype = torch.uint8 if zero is None else _t(zero).dtype
    low, high = _BOUNDS[str(dtype)[6:]]
    rounded = torch.round(x / scale) + (0 if zero is None else _t(zero).float())
    return torch.clamp(rounded, low, high).to(dtype)


@_reader("DequantizeLinear", "com.microsoft.DequantizeLinear")
def dequantize(module, a, x, scale, zero=None):
    if isinstance(scale, torch.Tensor):
        return (_t(x).float() - (0 if zero is None else _t(zero).float())) * scale
    x = _t(x)
    scales, zeros = _settings(x, scale, zero, "DequantizeLinear")
    name = str(x.dtype)[6:]
    if a.get("block_size"):
        raise UnsupportedOnnxError("onnx.load: DequantizeLinear by blocks")
    if name == "int32":  # a bias
        shape = (
            [-1 if i == a.get("axis", 1) % x.dim() else 1 for i in range(x.dim())] if scales.size > 1 else []
        )
        return x.float() * _t(scale).reshape(shape or [])
    if name not in _BOUNDS:
        raise UnsupportedOnnxError(f"onnx.load: DequantizeLinear of {name}; 8 bits are read")
    if scales.size == 1 and scales.ndim == 0 or x.dim() == 0 or scales.size == 1 and x.shape[0] != 1:
        number = 0 if zeros is None else int(zeros.reshape(-1)[0])
        return steps.dequantize_per_tensor(x, float(scales.reshape(-1)[0]), number, *_BOUNDS[name], x.dtype)
    axis = a.get("axis", 1)
    axis = axis + x.dim() if axis < 0 else axis
    points = torch.zeros(scales.size, dtype=torch.int64) if zeros is None else _t(zero).long()
    return steps.dequantize_per_channel(x, _t(scale), points, axis, *_BOUNDS[name], x.dtype)


@_reader("DynamicQuantizeLinear")
def dynamic_quantize(module, a, x):
    low, high = torch.clamp(x.min(), max=0.0), torch.clamp(x.max(), min=0.0)
    scale = torch.clamp((high - low) / 255, min=2.0**-100)
    zero = torch.clamp(torch.round(-low / scale), 0, 255).to(torch.uint8)
    return [_quantize_by_input(x, scale, zero), scale, zero]


@_reader("MatMulInteger")
def matmul_integer(module, a, x, weight, x_zero=None, w_zero=None):
    parts = [_t(v).int() - (0 if z is None else _t(z).int()) for v, z in ((x, x_zero), (weight, w_zero))]
    return torch.matmul(*parts)


@_reader("QLinearConv")
def qlinear_conv(module, a, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias=None):
    image, filters = (
        dequantize(module, {}, x, x_scale, x_zero),
        dequantize(module, {"axis": 0}, w, w_scale, w_zero),
    )
    if bias is not None:
        bias = _t(bias).float() * (_t(x_scale) * _t(w_scale))
    return quantize(module, {}, conv(module, a, image, filters, bias), y_scale, y_zero)


@_reader("QLinearMatMul")
def qlinear_matmul(module, a, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero):
    left, right = dequantize(module, {}, x, x_scale, x_zero), dequantize(module, {}, w, w_scale, w_zero)
    return quantize(module, {}, torch.matmul(left, right), y_scale, y_zero)


@_reader("com.microsoft.QLinearAdd")
def qlinear_add(module, a, x, x_scale, x_zero, y, y_scale, y_zero, scale, zero):
    left, right = dequantize(module, {}, x, x_scale, x_zero), dequantize(module, {}, y, y_scale, y_zero)
    return quantize(module, {}, left + right, scale, zero)


@_reader("com.microsoft.QGemm")
def qgemm(module, a, x, x_scale, x_zero, w, w_scale, w_zero, bias=None, y_scale=None, y_zero=None):
    axis = 0 if a.get("transB", 0) else 1
    left = dequantize(module, {}, x, x_scale, x_zero)
    right = dequantize(module, {"axis": axis}, w, w_scale, w_zero)
    if bias is not None:
        bias = _t(bias).float() * (_t(x_scale) * _t(w_scale))
    y = gemm(module, a, left, right, bias)
    return y if y_scale is None else quantize(module, {}, y, y_scale, y_zero)
