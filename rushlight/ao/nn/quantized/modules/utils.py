"""What layers with integer weights share."""

from itertools import repeat

import rushlight
from rushlight import nn

__all__ = ["WeightedQuantizedModule"]


class WeightedQuantizedModule(nn.Module):
    """Base of layers whose weights are integers."""

    @classmethod
    def from_reference(cls, ref_module, output_scale, output_zero_point):
        raise NotImplementedError(f"{cls.__name__} is not made from reference layers")


def _save_scale(module, destination, prefix):
    """The scale and the zero point of a layer's results, as tensors of its state."""
    destination[prefix + "scale"] = rushlight.tensor(module.scale)
    destination[prefix + "zero_point"] = rushlight.tensor(module.zero_point)


def _take_scale(module, state_dict, prefix):
    """Take what `_save_scale` wrote out of a state that is being loaded."""
    module.scale = float(state_dict.pop(prefix + "scale"))
    module.zero_point = int(state_dict.pop(prefix + "zero_point"))


def _get_weight_observer(observer):
    """The observer inside of a fake quantiser, or the observer itself."""
    return getattr(observer, "activation_post_process", observer)


def _needs_weight_clamping(observer, dtype):
    """Whether the observer's range is narrower than its dtype's."""
    observer = _get_weight_observer(observer)
    if dtype in (rushlight.qint8, rushlight.quint8, rushlight.qint32):
        kind = {rushlight.qint8: rushlight.int8, rushlight.quint8: rushlight.uint8}.get(
            dtype, rushlight.int32
        )
        limits = rushlight.iinfo(kind)
        return observer.quant_min > limits.min or observer.quant_max < limits.max
    return False


def _quantize_weight(float_wt, observer):
    """The weight as integers, with the scale that its observer asks for."""
    scale, zero_point = observer.calculate_qparams()
    scheme, dtype = observer.qscheme, observer.dtype
    if scheme in (rushlight.per_tensor_symmetric, rushlight.per_tensor_affine):
        result = rushlight.quantize_per_tensor(float_wt, float(scale), int(zero_point), dtype)
    elif scheme in (rushlight.per_channel_symmetric, rushlight.per_channel_affine):
        result = rushlight.quantize_per_channel(
            float_wt, scale.to(rushlight.double), zero_point.to(rushlight.int64), observer.ch_axis, dtype
        )
    elif scheme == rushlight.per_channel_affine_float_qparams:
        result = rushlight.quantize_per_channel(
            float_wt, scale.to(rushlight.float), zero_point.to(rushlight.float), observer.ch_axis, dtype
        )
    else:
        raise ValueError(f"Unexpected qscheme {scheme}")
    if _needs_weight_clamping(observer, dtype):
        watched = _get_weight_observer(observer)
        clamped = rushlight.clamp(result.int_repr(), watched.quant_min, watched.quant_max)
        if result.qscheme() == rushlight.per_tensor_affine:
            result = rushlight._make_per_tensor_quantized_tensor(
                clamped, result.q_scale(), result.q_zero_point()
            )
        else:
            result = rushlight._make_per_channel_quantized_tensor(
                clamped,
                result.q_per_channel_scales(),
                result.q_per_channel_zero_points(),
                result.q_per_channel_axis(),
            )
    return result


def _ntuple_from_first(n):
    """A function that repeats a number, or the first one of several."""

    def parse(x):
        while isinstance(x, (tuple, list)):
            if len(x) == n:
                break
            x = x[0]
        return tuple(repeat(x, n)) if not isinstance(x, (tuple, list)) else tuple(x)

    return parse


def _hide_packed_params_repr(self, params):
    """A layer's lines without its packed weights."""
    extra = self.extra_repr()
    lines = extra.split("\n") if extra else []
    for key, module in self._modules.items():
        if isinstance(module, params):
            continue
        shown = repr(module).replace("\n", "\n  ")
        lines.append(f"({key}): {shown}")
    name = self._get_name() + "("
    if len(lines) == 1 and extra:
        return name + lines[0] + ")"
    return name + ("\n  " + "\n  ".join(lines) + "\n" if lines else "") + ")"


def _weight_of(mod, qconfig):
    """The observer of a float layer's weight, after it saw the weight."""
    if hasattr(mod, "weight_fake_quant"):
        return mod.weight_fake_quant
    observer = qconfig.weight()
    observer(mod.weight)
    return observer


def _result_qparams(mod):
    """The scale and the zero point of a calibrated layer's results, as Python numbers."""
    seen = getattr(mod, "activation_post_process", None)
    if seen is None or seen.dtype == rushlight.float32:
        return 1.0, 0
    scale, zero_point = seen.calculate_qparams()
    return float(scale), int(zero_point)
