"""Weights that are numbers on the grid of integers."""

import rushlight
from rushlight import nn

__all__ = ["ReferenceQuantizedModule"]

_PER_CHANNEL = ("per_channel_affine", "per_channel_affine_float_qparams")


def _scheme(name):
    return getattr(rushlight, name)


class WeightScale:
    """The scheme, dtype, scale and zero point of one weight of a layer, kept under the weight's name."""

    def __init__(self, layer, name, qparams, device=None):
        qparams = dict(qparams or {"qscheme": rushlight.per_tensor_affine, "dtype": rushlight.quint8})
        scheme = qparams["qscheme"]
        known = [None, rushlight.per_tensor_affine, *(_scheme(s) for s in _PER_CHANNEL)]
        if scheme not in known:
            raise AssertionError(
                f"qscheme: {scheme} is not support in reference quantized {layer._get_name()}"
            )
        setattr(layer, f"{name}_qscheme", scheme)
        setattr(layer, f"{name}_dtype", qparams["dtype"])
        layer.is_decomposed = qparams.get("is_decomposed", False)
        if scheme is None:
            return
        default_scale, default_zero = (1.0, 0)
        for part, default, kind in (
            ("scale", default_scale, rushlight.float),
            ("zero_point", default_zero, rushlight.int),
        ):
            value = qparams.get(part, default)
            if isinstance(value, rushlight.Tensor):
                value = value.detach().clone()
            else:
                value = rushlight.tensor(value, dtype=kind, device=device)
            layer.register_buffer(f"{name}_{part}", value)
        axis = qparams.get("axis", 0)
        layer.register_buffer(f"{name}_axis", rushlight.tensor(int(axis), dtype=rushlight.int, device=device))
        setattr(layer, f"{name}_axis_int", int(axis))
        setattr(layer, f"{name}_quant_min", qparams.get("quant_min"))
        setattr(layer, f"{name}_quant_max", qparams.get("quant_max"))


def quantized_weight(layer, name="weight"):
    """The weight as integers."""
    weight, scheme = getattr(layer, name), getattr(layer, f"{name}_qscheme")
    dtype = getattr(layer, f"{name}_dtype")
    if dtype == rushlight.float16:
        return weight.to(rushlight.float16)
    if scheme is None:
        return weight
    scale, zero_point = getattr(layer, f"{name}_scale"), getattr(layer, f"{name}_zero_point")
    axis = getattr(layer, f"{name}_axis_int")
    if layer.is_decomposed:
        low, high = getattr(layer, f"{name}_quant_min"), getattr(layer, f"{name}_quant_max")
        operators = rushlight.ops.quantized_decomposed
        if scheme == rushlight.per_tensor_affine:
            return operators.quantize_per_tensor(weight, scale, zero_point, low, high, _plain(dtype))
        return operators.quantize_per_channel(weight, scale, zero_point, axis, low, high, _plain(dtype))
    if scheme == rushlight.per_tensor_affine:
        return rushlight.quantize_per_tensor(weight, float(scale), int(zero_point), dtype)
    kinds = (
        (rushlight.float, rushlight.float)
        if scheme == _scheme(_PER_CHANNEL[1])
        else (rushlight.double, rushlight.int64)
    )
    return rushlight.quantize_per_channel(weight, scale.to(kinds[0]), zero_point.to(kinds[1]), axis, dtype)


def _plain(dtype):
    """The dtype of the integers in memory."""
    from rushlight.ao.quantization.utils import to_underlying_dtype

    return to_underlying_dtype(dtype)


def rounded_weight(layer, name="weight"):
    """The weight as numbers on the grid of integers."""
    scheme, dtype = getattr(layer, f"{name}_qscheme"), getattr(layer, f"{name}_dtype")
    whole = quantized_weight(layer, name)
    if dtype == rushlight.float16:
        return whole.to(rushlight.float)
    if scheme is None:
        return whole
    if not layer.is_decomposed:
        return whole.dequantize()
    scale, zero_point = getattr(layer, f"{name}_scale"), getattr(layer, f"{name}_zero_point")
    low, high = getattr(layer, f"{name}_quant_min"), getattr(layer, f"{name}_quant_max")
    operators = rushlight.ops.quantized_decomposed
    if scheme == rushlight.per_tensor_affine:
        return operators.dequantize_per_tensor(whole, scale, zero_point, low, high, _plain(dtype))
    axis = getattr(layer, f"{name}_axis_int")
    return operators.dequantize_per_channel(whole, scale, zero_point, axis, low, high, _plain(dtype))


class ReferenceQuantizedModule(nn.Module):
    """Base of layers with one such weight."""

    def _init_weight_qparams(self, weight_qparams, device):
        WeightScale(self, "weight", weight_qparams, device)

    def get_weight(self):
        """The weight as numbers on the grid of integers."""
        return rounded_weight(self)

    def get_quantized_weight(self):
        """The weight as integers."""
        return quantized_weight(self)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight_qscheme"] = self.weight_qscheme
        destination[prefix + "weight_dtype"] = self.weight_dtype

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        for name in ("weight_qscheme", "weight_dtype"):
            if prefix + name in state_dict:
                setattr(self, name, state_dict.pop(prefix + name))
        for name in ("weight_scale", "weight_zero_point"):
            value = state_dict.get(prefix + name)
            own = getattr(self, name, None)
            if value is not None and (own is None or value.shape != own.shape):
                setattr(self, name, rushlight.empty_like(value))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing, unexpected, errors)
