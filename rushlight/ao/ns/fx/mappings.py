"""Which operations of two graphs stand for each other, and whether they take numbers or integers."""

import operator

import rushlight
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn import qat as nnqat
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn.intrinsic import qat as nniqat
from rushlight.ao.nn.intrinsic import quantized as nniq
from rushlight.ao.nn.intrinsic.quantized import dynamic as nniqd
from rushlight.ao.nn.quantized import dynamic as nnqd
from rushlight.ao.nn.quantized import reference as nnqr
from rushlight.nn import functional as F

__all__ = [
    "add_op_to_sets_of_related_ops",
    "get_base_name_for_op",
    "get_base_name_to_sets_of_related_ops",
    "get_node_type_to_io_type_map",
    "get_unmatchable_types_map",
]

_q = rushlight.ops.quantized


def _of(*places, names):
    """What of these names the places have."""
    return {getattr(place, name) for place in places for name in names if hasattr(place, name)}


def _convolution(dims):
    plain = [f"{kind}{dims}d" for kind in ("Conv", "ConvReLU", "ConvBn", "ConvBnReLU")]
    more = [f"ConvAdd{dims}d", f"ConvAddReLU{dims}d"]
    functions = [f"conv{dims}d", f"conv{dims}d_relu"]
    layers = _of(nn, nnqr, nnq, nnqat, nni, nniq, nniqat, names=plain + more)
    return layers | {getattr(F, functions[0])} | _of(_q, names=functions)


def _linear():
    layers = ["Linear", "LinearReLU", "LinearBn1d", "LinearLeakyReLU", "LinearTanh"]
    functions = ("linear", "linear_relu", "linear_dynamic", "linear_relu_dynamic")
    found = _of(nn, nnqr, nnq, nnqd, nnqat, nni, nniq, nniqd, nniqat, names=layers)
    dynamic = _of(nnqat.dynamic, names=layers) if hasattr(nnqat, "dynamic") else set()
    halves = ("linear_dynamic_fp16", "linear_relu_dynamic_fp16")
    found |= {nn.modules.linear.NonDynamicallyQuantizableLinear, F.linear}
    return found | dynamic | _of(_q, names=(*functions, *halves))


def _pairs():
    """Sets of operations that are each other, in numbers, in training and in integers."""
    yield from (_convolution(dims) for dims in (1, 2, 3))
    yield _linear()
    for dims in (1, 2, 3):
        name = f"ConvTranspose{dims}d"
        yield _of(nn, nnqr, nnq, names=[name]) | {getattr(F, f"conv_transpose{dims}d")}
    for dims in (1, 2, 3):
        kinds = _of(nn, nnq, names=[f"BatchNorm{dims}d"]) | _of(nni, nniq, names=[f"BNReLU{dims}d"])
        yield kinds | _of(_q, names=[f"batch_norm{dims}d", f"batch_norm{dims}d_relu"])
    for name in ("Embedding", "EmbeddingBag"):
        yield _of(nn, nnqat, nnqr, nnq, names=[name])
    for name in ("LSTM", "GRU", "LSTMCell", "GRUCell", "RNNCell"):
        yield _of(nn, nnqr, nnqd, nnq, names=[name])
    yield {rushlight.add, operator.add, _q.add, _q.add_relu}
    yield {rushlight.mul, operator.mul, _q.mul, _q.mul_relu}
    yield {rushlight.matmul, _q.matmul}
    yield {rushlight.cat}
    yield {rushlight.stack}
    for layer, functions in _NORMS.items():
        layers = [f"{layer}{d}d" for d in (1, 2, 3)] if layer == "InstanceNorm" else [layer]
        yield _of(nn, nnq, names=layers) | {getattr(F, functions)} | _of(_q, names=[functions])
    for layer, name in _ACTIVATIONS.items():
        functions = _of(F, rushlight, names=[name, f"{name}_"]) | _of(_q, names=[name])
        yield _of(nn, nnq, nnqr, names=[layer]) | functions | {name, f"{name}_"}
    for kind, name in (("AdaptiveAvgPool", "adaptive_avg_pool"), ("AvgPool", "avg_pool")):
        for dims in (1, 2, 3):
            yield {getattr(nn, f"{kind}{dims}d")} | _of(F, rushlight, names=[f"{name}{dims}d"])
    for dims in (1, 2, 3):
        names = [f"max_pool{dims}d", f"max_pool{dims}d_with_indices"]
        yield {getattr(nn, f"MaxPool{dims}d")} | _of(F, rushlight, names=names[:1])
    for layer, name in (("PixelShuffle", "pixel_shuffle"), ("PixelUnshuffle", "pixel_unshuffle")):
        yield {getattr(nn, layer)} | _of(F, rushlight, names=[name])
    yield {nn.Softmax, nnq.Softmax}
    yield {nn.Dropout, nnq.Dropout, F.dropout, _q.dropout}
    yield {F.interpolate}
    yield {nn.Identity}
    for name in ("clamp", "mean", "sum", "flatten"):
        yield _of(rushlight, names=[name]) | {name}


_NORMS = {"InstanceNorm": "instance_norm", "LayerNorm": "layer_norm", "GroupNorm": "group_norm"}
_ACTIVATIONS = {
    "ReLU": "relu",
    "ReLU6": "relu6",
    "ELU": "elu",
    "Hardswish": "hardswish",
    "LeakyReLU": "leaky_relu",
    "Hardtanh": "hardtanh",
    "Hardsigmoid": "hardsigmoid",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "PReLU": "prelu",
}


def get_base_name_to_sets_of_related_ops():
    """Sets of operations that are compared with each other, by a name for each."""
    return {str(i): found for i, found in enumerate(_pairs())}


def get_base_name_for_op(base_name_to_sets_of_related_ops, op):
    """The name of the set that an operation is in, or None."""
    for name, found in base_name_to_sets_of_related_ops.items():
        if op in found:
            return name
    return None


def add_op_to_sets_of_related_ops(base_name_to_sets_of_related_ops, op, related_op):
    """An operation of the program's stands for one that is known; without one, for itself."""
    if related_op is None:
        numbers = [int(name) for name in base_name_to_sets_of_related_ops if name.isdigit()]
        base_name_to_sets_of_related_ops[str(max(numbers, default=-1) + 1)] = {op}
        return
    name = get_base_name_for_op(base_name_to_sets_of_related_ops, related_op)
    if name is None:
        raise ValueError(f"{related_op} not found in base_name_to_sets_of_related_ops")
    base_name_to_sets_of_related_ops[name].add(op)


def _both_kinds():
    """What takes numbers and integers alike: classes, functions, methods."""
    classes, functions, methods = {nn.Identity, nn.PixelShuffle, nn.PixelUnshuffle, nn.Softmax}, set(), set()
    for layer in ("ReLU", "ReLU6", "Hardtanh", "Hardsigmoid", "Sigmoid", "Tanh"):
        name = _ACTIVATIONS[layer]
        classes.add(getattr(nn, layer))
        functions |= _of(F, rushlight, names=[name, f"{name}_"])
        methods |= {name, f"{name}_"}
    for kind in ("AdaptiveAvgPool", "AvgPool", "MaxPool"):
        classes |= {getattr(nn, f"{kind}{dims}d") for dims in (1, 2, 3)}
    names = [f"{name}{d}d" for name in ("adaptive_avg_pool", "avg_pool", "max_pool") for d in (1, 2, 3)]
    functions |= _of(F, rushlight, names=[*names, "pixel_shuffle", "pixel_unshuffle", "interpolate"])
    moving = ("clamp", "flatten", "mean", "narrow", "repeat_interleave", "transpose", "squeeze", "stack")
    functions |= _of(rushlight, names=[*moving, "unsqueeze", "cat", "sum", "permute", "reshape"])
    functions.add(operator.floordiv)
    methods |= {*moving, "unsqueeze", "contiguous", "detach", "detach_", "permute", "repeat", "reshape"}
    methods |= {"resize_", "squeeze_", "unsqueeze_", "view", "shape", "size"}
    return classes, functions, methods


def get_node_type_to_io_type_map():
    """Classes, functions and methods by what they take and give."""
    sets = list(_pairs())
    classes, functions, methods = _both_kinds()
    of_integers = (nnq.__name__, nniq.__name__)
    in_numbers = (nnqd.__name__, nniqd.__name__, nnqr.__name__)

    def whole(kind):
        place = kind.__module__
        return place.startswith(of_integers) and not place.startswith(in_numbers)

    layers = {kind for found in sets for kind in found if isinstance(kind, type)} - classes
    called = {f for found in sets for f in found if not isinstance(f, (type, str))} - functions
    dynamic = _of(_q, names=("linear_dynamic", "linear_relu_dynamic"))
    dynamic |= _of(_q, names=("linear_dynamic_fp16", "linear_relu_dynamic_fp16"))
    known = {getattr(_q, name) for name in dir(_q) if not name.startswith("_")}
    integers = {f for f in called if f in known or "quantized" in getattr(f, "__module__", "")} - dynamic
    return {
        "funs_io_type_fp32": called - integers - {rushlight.add, rushlight.mul, operator.add, operator.mul},
        "funs_io_type_fp16": set(),
        "funs_io_type_int8": integers,
        "funs_io_type_fp32_or_int8": functions,
        "mods_io_type_fp32": {kind for kind in layers if not whole(kind)},
        "mods_io_type_int8": {kind for kind in layers if whole(kind)},
        "mods_io_type_fp32_or_int8": classes - {nn.Softmax},
        "meths_io_type_fp32_or_int8": methods,
    }


def get_unmatchable_types_map():
    """What is never compared: it moves elements, observes, or rounds."""
    stubs = rushlight.ao.quantization
    return {
        "funs_unmatchable": {
            *(rushlight.quantize_per_tensor, rushlight.quantize_per_tensor_dynamic, operator.getitem),
            *(getattr, rushlight.dequantize, rushlight.transpose, rushlight.squeeze, rushlight.unsqueeze),
            *(rushlight.narrow, rushlight.repeat_interleave, operator.floordiv),
        },
        "mods_unmatchable": {stubs.QuantStub, stubs.DeQuantStub, nnq.Quantize, nnq.DeQuantize},
        "meths_unmatchable": {
            *("to", "dequantize", "reshape", "view", "unsqueeze_", "unsqueeze", "transpose", "squeeze_"),
            *("squeeze", "size", "shape", "resize_", "repeat_interleave", "repeat", "permute", "numel"),
            *("mean", "detach_", "detach", "contiguous", "clamp", "chunk"),
        },
    }
