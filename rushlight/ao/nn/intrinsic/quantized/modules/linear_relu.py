"""The linear layer of integers, then an activation."""

import rushlight
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn.quantized.modules.linear import Linear
from rushlight.ao.nn.quantized.modules.utils import _quantize_weight

__all__ = ["LinearLeakyReLU", "LinearReLU", "LinearTanh"]


class _FusedLinear(Linear):
    """Its bias is asked for as that of the layer of floats is."""

    def __init__(self, in_features, out_features, bias=True, dtype=rushlight.qint8):
        super().__init__(in_features, out_features, bias, dtype)


class LinearReLU(_FusedLinear):
    """Linear of integers, then ReLU."""

    _FLOAT_MODULE = nni.LinearReLU

    def forward(self, x):
        return rushlight.ops.quantized.linear_relu(
            x, self._packed_params._packed_params, self.scale, self.zero_point
        )

    def _get_name(self):
        return "QuantizedLinearReLU"

    @classmethod
    def from_reference(cls, ref_linear_relu, output_scale, output_zero_point):
        return super().from_reference(ref_linear_relu[0], output_scale, output_zero_point)


def _from_fused(cls, mod, *more):
    """The calibrated linear layer of a fused one, with the scale of the whole."""
    if type(mod) is not cls._FLOAT_MODULE:
        raise AssertionError(f"Input float module should be {cls._FLOAT_MODULE.__name__}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    linear = mod[0]
    observer = linear.qconfig.weight() if getattr(linear, "qconfig", None) else mod.qconfig.weight()
    observer(linear.weight)
    if observer.dtype != rushlight.qint8:
        raise AssertionError("Weight observer must have dtype torch.qint8")
    made = cls(linear.in_features, linear.out_features, *more, dtype=observer.dtype)
    made.set_weight_bias(_quantize_weight(linear.weight.float(), observer), linear.bias)
    made.scale, made.zero_point = float(scale), int(zero_point)
    return made


class LinearLeakyReLU(Linear):
    """Linear of integers, then LeakyReLU."""

    _FLOAT_MODULE = nni.LinearLeakyReLU

    def __init__(self, in_features, out_features, negative_slope, bias=True, dtype=rushlight.qint8):
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def forward(self, x):
        return rushlight.ops.quantized.linear_leaky_relu(
            x, self._packed_params._packed_params, self.scale, self.zero_point, self.negative_slope
        )

    def _get_name(self):
        return "QuantizedLinearLeakyReLU"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        return _from_fused(cls, mod, mod[1].negative_slope)

    @classmethod
    def from_reference(cls, ref_mod, output_scale, output_zero_point):
        linear, activation = ref_mod[0], ref_mod[1]
        made = cls(linear.in_features, linear.out_features, activation.negative_slope)
        made.set_weight_bias(linear.get_quantized_weight(), linear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


class LinearTanh(_FusedLinear):
    """Linear of integers, then the hyperbolic tangent."""

    _FLOAT_MODULE = nni.LinearTanh

    def forward(self, x):
        return rushlight.ops.quantized.linear_tanh(
            x, self._packed_params._packed_params, self.scale, self.zero_point
        )

    def _get_name(self):
        return "QuantizedLinearTanh"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        return _from_fused(cls, mod)

    @classmethod
    def from_reference(cls, ref_mod, output_scale, output_zero_point):
        return super().from_reference(ref_mod[0], output_scale, output_zero_point)
