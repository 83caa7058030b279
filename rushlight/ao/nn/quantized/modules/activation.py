"""Activations of integers."""

import rushlight
from rushlight import nn
from rushlight.ao.nn import quantizable

__all__ = ["ELU", "Hardswish", "LeakyReLU", "MultiheadAttention", "PReLU", "ReLU6", "Sigmoid", "Softmax"]


def _qparams(mod):
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


class ReLU6(nn.ReLU):
    """ReLU6 of integers; the scale stays the operand's."""

    def __init__(self, inplace=False):
        super().__init__(inplace)
        self.inplace = inplace

    def forward(self, input):
        return rushlight.ops.quantized.relu6(input, self.inplace)

    def _get_name(self):
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        return ReLU6(mod.inplace)


class Hardswish(nn.Hardswish):
    """Hardswish of integers."""

    def __init__(self, scale, zero_point, device=None, dtype=None):
        super().__init__()
        self.register_buffer("scale", rushlight.tensor(scale, device=device))
        self.register_buffer("zero_point", rushlight.tensor(zero_point, device=device))

    def forward(self, input):
        return rushlight.ops.quantized.hardswish(input, float(self.scale), int(self.zero_point))

    def _get_name(self):
        return "QuantizedHardswish"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        return Hardswish(*_qparams(mod))

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        return cls(float(scale), int(zero_point))


class ELU(nn.ELU):
    """ELU of integers."""

    def __init__(self, scale, zero_point, alpha=1.0):
        super().__init__(alpha)
        self.scale = scale
        self.zero_point = zero_point

    def forward(self, input):
        return rushlight.ops.quantized.elu(input, self.scale, self.zero_point, self.alpha)

    def _get_name(self):
        return "QuantizedELU"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        return ELU(*_qparams(mod), mod.alpha)

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        return cls(float(scale), int(zero_point), mod.alpha)


class LeakyReLU(nn.LeakyReLU):
    """LeakyReLU of integers."""

    def __init__(self, scale, zero_point, negative_slope=1e-2, inplace=False, device=None, dtype=None):
        super().__init__(negative_slope, inplace)
        self.register_buffer("scale", rushlight.tensor(scale, device=device))
        self.register_buffer("zero_point", rushlight.tensor(zero_point, device=device))

    def forward(self, input):
        return rushlight.ops.quantized.leaky_relu(
            input, self.negative_slope, self.inplace, self.scale, self.zero_point
        )

    def _get_name(self):
        return "QuantizedLeakyReLU"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        return cls(*_qparams(mod), mod.negative_slope, mod.inplace)

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        return cls(float(scale), int(zero_point), mod.negative_slope, mod.inplace)


class Sigmoid(nn.Sigmoid):
    """Sigmoid of integers."""

    def __init__(self, output_scale, output_zero_point):
        super().__init__()
        self.output_scale = output_scale
        self.output_zero_point = output_zero_point

    def forward(self, input):
        return rushlight.ops.quantized.sigmoid(input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        return cls(*_qparams(mod))


class Softmax(nn.Softmax):
    """Softmax of integers."""

    def __init__(self, dim=None, scale=1.0, zero_point=0):
        super().__init__()
        self.dim = dim
        self.scale = scale
        self.zero_point = zero_point

    def forward(self, input):
        dim = self.dim
        if dim is None:
            dim = nn.functional._get_softmax_dim("softmax", input.dim(), 5)
        return rushlight.ops.quantized.softmax(input, dim, float(self.scale), int(self.zero_point))

    def _get_name(self):
        return "QuantizedSoftmax"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        return Softmax(mod.dim, *_qparams(mod))

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        return cls(mod.dim, float(scale), int(zero_point))


class MultiheadAttention(quantizable.MultiheadAttention):
    """Attention whose products are of integers."""

    _FLOAT_MODULE = quantizable.MultiheadAttention

    def _get_name(self):
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, other):
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed MHA module. "
            "Please, see the examples on quantizable MHAs."
        )

    @classmethod
    def from_observed(cls, other):
        from rushlight.ao import quantization

        made = quantization.convert(
            other, mapping=None, inplace=False, remove_qconfig=True, convert_custom_config_dict=None
        )
        made.__class__ = cls
        # The projections are layers of their own.
        del made.in_proj_weight, made.in_proj_bias
        # Biases that stand beside keys and values take their operand's scale.
        for name, linear in (("bias_k", "linear_K"), ("bias_v", "linear_V")):
            bias = made._parameters.pop(name, None)
            if bias is not None:
                layer = getattr(made, linear)
                bias = rushlight.quantize_per_tensor(bias, layer.scale, layer.zero_point, rushlight.quint8)
            setattr(made, name, bias)
        return made


class PReLU(nn.Module):
    """PReLU of integers."""

    def __init__(self, output_scale, output_zero_point, num_parameters=1):
        super().__init__()
        self.num_parameters = num_parameters
        self.scale = output_scale
        self.zero_point = output_zero_point
        weight = rushlight.randn(num_parameters, dtype=rushlight.float)
        self.set_weight(
            rushlight.quantize_per_tensor(weight, scale=1.0, zero_point=0, dtype=rushlight.quint8)
        )

    def set_weight(self, w):
        self.weight = w

    def forward(self, input):
        return rushlight.ops.quantized.prelu(input, self.weight, float(self.scale), int(self.zero_point))

    def _get_name(self):
        return "QuantizedPReLU"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        return cls._with(mod, *_qparams(mod))

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        return cls._with(mod, float(scale), int(zero_point))

    @classmethod
    def _with(cls, mod, scale, zero_point):
        made = cls(scale, zero_point, mod.num_parameters)
        observer = mod.qconfig.weight()
        observer(mod.weight)
        if observer.dtype != rushlight.quint8:
            raise AssertionError(f"PReLU's weight observer should have dtype quint8 but got {observer.dtype}")
        weight_scale, weight_zero = observer.calculate_qparams()
        made.set_weight(
            rushlight.quantize_per_tensor(
                mod.weight.float(), float(weight_scale), int(weight_zero), rushlight.quint8
            )
        )
        return made
