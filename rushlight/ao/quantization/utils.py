"""What observers, layers and graph passes of quantisation share: ranges of integers, dtypes of a
configuration."""

import warnings
from typing import Any

import rushlight
from rushlight.jit._decorations import computes

from .quant_type import QuantType

__all__ = [
    "MatchAllNode",
    "NodePattern",
    "Pattern",
    "activation_dtype",
    "activation_is_dynamically_quantized",
    "activation_is_int32_quantized",
    "activation_is_int8_quantized",
    "activation_is_statically_quantized",
    "calculate_qmin_qmax",
    "check_min_max_valid",
    "check_node",
    "determine_qparams",
    "get_combined_dict",
    "get_fqn_to_example_inputs",
    "get_qconfig_dtypes",
    "get_quant_type",
    "get_swapped_custom_module_class",
    "getattr_from_fqn",
    "has_no_children_ignoring_parametrizations",
    "is_per_channel",
    "is_per_tensor",
    "op_is_int8_dynamically_quantized",
    "to_underlying_dtype",
    "validate_qmin_qmax",
    "weight_dtype",
    "weight_is_quantized",
    "weight_is_statically_quantized",
]

Pattern = Any
NodePattern = Any
QuantizerCls = Any


class MatchAllNode:
    """In a pattern: any node."""


def is_per_tensor(qscheme):
    return qscheme in (rushlight.per_tensor_affine, rushlight.per_tensor_symmetric)


def is_per_channel(qscheme):
    return qscheme in (
        rushlight.per_channel_affine,
        rushlight.per_channel_affine_float_qparams,
        rushlight.per_channel_symmetric,
    )


def getattr_from_fqn(obj, fqn):
    """``obj.a.b`` from ``"a.b"``."""
    for name in fqn.split("."):
        obj = getattr(obj, name)
    return obj


_UNDERLYING = {
    "quint8": "uint8",
    "qint8": "int8",
    "qint32": "int32",
    "quint4x2": "uint8",
    "quint2x4": "uint8",
}


def to_underlying_dtype(qdtype):
    """The dtype of the integers in memory."""
    name = str(qdtype).rpartition(".")[2]
    if name in _UNDERLYING:
        return getattr(rushlight, _UNDERLYING[name])
    if name in ("uint8", "int8", "uint16", "int16", "int32", "float8_e5m2", "float8_e4m3fn"):
        return qdtype
    raise AssertionError(f"Unsupported dtype: {qdtype}")


def _parent_name(target):
    """The path of what holds a module, and the module's name there."""
    parent, _, name = target.rpartition(".")
    return parent, name


def get_qparam_dict(observer_or_fake_quant):
    """What an observer asks for, by name, as reference layers take it."""
    from .observer import PlaceholderObserver

    seen = observer_or_fake_quant
    scheme = getattr(seen, "qscheme", None)
    if not scheme or isinstance(seen, PlaceholderObserver):
        return {"qscheme": None, "dtype": seen.dtype}
    found = {"qscheme": scheme, "dtype": seen.dtype}
    if scheme in (rushlight.per_tensor_affine, rushlight.per_tensor_symmetric):
        found["qscheme"] = rushlight.per_tensor_affine
    else:
        if scheme == rushlight.per_channel_symmetric:
            found["qscheme"] = rushlight.per_channel_affine
        found["axis"] = getattr(seen, "ch_axis", 0)
    found["scale"], found["zero_point"] = seen.calculate_qparams()
    for name in ("quant_min", "quant_max"):
        if hasattr(seen, name):
            found[name] = getattr(seen, name)
    return found


def get_combined_dict(default_dict, additional_dict):
    return {**default_dict, **additional_dict}


def check_node(node, modules):
    """Whether a node calls a function, a method, or a module."""
    return (
        node.op == "call_function",
        node.op == "call_method",
        node.op == "call_module" and str(node.target) in modules,
    )


def get_swapped_custom_module_class(custom_module, custom_module_class_mapping, qconfig):
    """The class that a module of the user's becomes under this configuration."""
    by_class = custom_module_class_mapping.get(get_quant_type(qconfig), {})
    if type(custom_module) not in by_class:
        raise AssertionError(
            f"did not find corresponding observed module class for {type(custom_module)} in "
            f"mapping: {by_class}"
        )
    return by_class[type(custom_module)]


# ---- what a configuration asks for ----


def _made(maker):
    return None if maker is None else maker()


def activation_dtype(qconfig):
    return qconfig.activation().dtype


def weight_dtype(qconfig):
    return qconfig.weight().dtype


def _integers():
    t = rushlight
    return (
        t.quint8,
        t.qint8,
        t.qint32,
        t.float16,
        t.uint8,
        t.int8,
        t.int16,
        t.int32,
        t.float8_e5m2,
        t.float8_e4m3fn,
    )


def activation_is_statically_quantized(qconfig):
    seen = qconfig.activation()
    return seen.dtype in _integers() and not getattr(seen, "is_dynamic", False)


def activation_is_dynamically_quantized(qconfig):
    return bool(getattr(qconfig.activation(), "is_dynamic", False))


def activation_is_int8_quantized(qconfig):
    return activation_dtype(qconfig) in (rushlight.quint8, rushlight.qint8, rushlight.uint8, rushlight.int8)


def activation_is_int32_quantized(qconfig):
    return activation_dtype(qconfig) in (rushlight.qint32, rushlight.int32)


def weight_is_quantized(qconfig):
    return weight_dtype(qconfig) in (*_integers(), rushlight.quint4x2)


def weight_is_statically_quantized(qconfig):
    return weight_dtype(qconfig) in (rushlight.quint8, rushlight.qint8, rushlight.uint8, rushlight.int8)


def op_is_int8_dynamically_quantized(qconfig):
    eight = (rushlight.quint8, rushlight.uint8, rushlight.qint8, rushlight.int8)
    activation, _, dynamic = get_qconfig_dtypes(qconfig)
    return activation in eight[:2] and weight_dtype(qconfig) in eight[2:] and bool(dynamic)


def get_qconfig_dtypes(qconfig):
    """The dtype of activations, that of weights, and whether activations get their scale at each call."""
    activation = qconfig.activation()
    return activation.dtype, qconfig.weight().dtype, getattr(activation, "is_dynamic", False)


def get_quant_type(qconfig):
    if qconfig is None:
        raise AssertionError("a configuration is needed to tell the kind of quantisation, and this is None")
    activation, weight = qconfig.activation(), qconfig.weight()
    static = (rushlight.quint8, rushlight.qint8, rushlight.quint4x2, rushlight.qint32)
    static += (rushlight.uint8, rushlight.int8, rushlight.int16, rushlight.int32)
    static += (rushlight.float8_e5m2, rushlight.float8_e4m3fn)
    if weight.dtype in static:
        if getattr(activation, "is_dynamic", False):
            return QuantType.DYNAMIC
        if activation.dtype in static:
            return QuantType.STATIC
        return QuantType.WEIGHT_ONLY
    if weight.dtype == rushlight.float16:
        if getattr(activation, "is_dynamic", False):
            return QuantType.DYNAMIC
        if activation.dtype == rushlight.float16:
            return QuantType.STATIC
    raise Exception(
        f"Unrecognized dtype combination in get_quant_type: "
        f"activation({activation.dtype}),weight({weight.dtype})"
    )


# ---- ranges ----


def check_min_max_valid(min_val, max_val):
    """Whether something was seen; a minimum above its maximum is an error."""
    if min_val.numel() == 0 or max_val.numel() == 0:
        warnings.warn(
            "must run observer before calling calculate_qparams. Returning default values.", stacklevel=2
        )
        return False
    if min_val.dim() == 0 or max_val.dim() == 0:
        if min_val == float("inf") and max_val == float("-inf"):
            warnings.warn(
                "must run observer before calling calculate_qparams. Returning default values.", stacklevel=2
            )
            return False
        if min_val > max_val:
            raise AssertionError(f"min {min_val} should be less than max {max_val}")
    elif (min_val > max_val).any():
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


_FULL_RANGES = {
    "qint8": (-128, 127, -64, 63),
    "int8": (-128, 127, -64, 63),
    "quint8": (0, 255, 0, 127),
    "uint8": (0, 255, 0, 127),
    "qint32": (-(2**31), 2**31 - 1) * 2,
    "int32": (-(2**31), 2**31 - 1) * 2,
    "uint16": (0, 2**16 - 1) * 2,
    "int16": (-(2**15), 2**15 - 1) * 2,
}


def validate_qmin_qmax(quant_min, quant_max):
    """A range of integers that the user names holds zero and is not empty."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("Used-specified quantization range must include 0.")
    if not quant_min < quant_max:
        raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range.")


def calculate_qmin_qmax(quant_min, quant_max, has_customized_qrange, dtype, reduce_range):
    """The range of integers of a dtype, or the user's own; half of it where products must not saturate."""
    if not has_customized_qrange:
        full = _FULL_RANGES.get(str(dtype).rpartition(".")[2], (0, 15, 0, 15))
        return full[2:] if reduce_range else full[:2]
    if quant_min is None or quant_max is None:
        raise AssertionError("a range of one's own needs quant_min and quant_max")
    validate_qmin_qmax(quant_min, quant_max)
    levels = quant_max - quant_min + 1
    if dtype in (rushlight.qint8, rushlight.int8, rushlight.quint8, rushlight.uint8):
        if not 0 < levels <= 256:
            if not (dtype in (rushlight.quint8, rushlight.uint8) or levels > 0):
                raise AssertionError(
                    "quantization range should be positive and not exceed the maximum bit range (=256)."
                )
    if reduce_range:
        return quant_min // 2, quant_max // 2
    return quant_min, quant_max


@computes
def determine_qparams(
    min_val, max_val, quant_min, quant_max, dtype, eps, has_customized_qrange, qscheme=None
):
    """The scale and the zero point with which [quant_min, quant_max] covers [min_val, max_val] and zero."""
    if qscheme is None:
        qscheme = rushlight.per_tensor_affine
    if not check_min_max_valid(min_val, max_val):
        return rushlight.tensor([1.0], device=min_val.device), rushlight.tensor([0], device=min_val.device)
    low = rushlight.min(min_val, rushlight.zeros_like(min_val))
    high = rushlight.max(max_val, rushlight.zeros_like(max_val))
    shape, device = low.size(), low.device
    if qscheme in (rushlight.per_tensor_symmetric, rushlight.per_channel_symmetric):
        scale = rushlight.max(rushlight.max(-low, high) / (float(quant_max - quant_min) / 2), eps)
        zero = 0
        if dtype in (rushlight.quint8, rushlight.uint8):
            zero = (quant_min + quant_max) // 2 if has_customized_qrange else 128
        elif dtype == rushlight.uint16:
            zero = 2**15
        zero_point = rushlight.full(shape, zero, dtype=rushlight.int64, device=device)
    elif qscheme == rushlight.per_channel_affine_float_qparams:
        scale = (max_val - min_val) / float(quant_max - quant_min)
        scale = rushlight.where(scale > eps, scale, rushlight.ones_like(scale))
        zero_point = -1 * min_val / scale
    else:
        scale = rushlight.max((high - low) / float(quant_max - quant_min), eps)
        zero_point = quant_min - rushlight.round(low / scale).to(rushlight.int32)
        zero_point = rushlight.clamp(zero_point, quant_min, quant_max)
    # One scale is still a vector of one: kernels and state_dicts expect it.
    if scale.dim() == 0:
        scale = scale.reshape(1)
    if zero_point.dim() == 0:
        zero_point = zero_point.reshape(1)
    return scale.to(scale.dtype), zero_point


def has_no_children_ignoring_parametrizations(module):
    """Whether a module is a leaf; what parametrizes its weights does not count."""
    names = list(module._modules)
    return not names or names == ["parametrizations"]


def get_fqn_to_example_inputs(model, example_inputs):
    """The positional arguments of each submodule when the model is called with these."""
    seen = {}
    handles = []
    for name, module in model.named_modules():
        handles.append(
            module.register_forward_pre_hook(lambda _, args, name=name: seen.__setitem__(name, args))
        )
    try:
        model(*example_inputs)
    finally:
        for handle in handles:
            handle.remove()
    return seen
