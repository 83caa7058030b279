"""The linear layer with integer weights."""

import rushlight
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn.intrinsic import qat as nniqat
from rushlight.nn.utils.fusion import fuse_linear_bn_weights
from rushlight.nn.utils.parametrize import type_before_parametrizations

from .utils import (
    WeightedQuantizedModule,
    _hide_packed_params_repr,
    _quantize_weight,
    _save_scale,
    _take_scale,
)

__all__ = ["Linear", "LinearPackedParams"]


class LinearPackedParams(nn.Module):
    """A weight and a bias as the kernel wants them; in files they are plain tensors."""

    _version = 3

    def __init__(self, dtype=rushlight.qint8):
        super().__init__()
        self.dtype = dtype
        if dtype == rushlight.qint8:
            weight = rushlight._empty_affine_quantized([1, 1], scale=1, zero_point=0, dtype=rushlight.qint8)
        elif dtype == rushlight.float16:
            weight = rushlight.zeros([1, 1], dtype=rushlight.float)
        else:
            raise RuntimeError("Unsupported dtype on dynamic quantized linear!")
        self.set_weight_bias(weight, None)

    def set_weight_bias(self, weight, bias):
        if self.dtype == rushlight.qint8:
            self._packed_params = rushlight.ops.quantized.linear_prepack(weight, bias)
        elif self.dtype == rushlight.float16:
            self._packed_params = rushlight.ops.quantized.linear_prepack_fp16(weight, bias)
        else:
            raise RuntimeError("Unsupported dtype on dynamic quantized linear!")

    def _weight_bias(self):
        if self.dtype == rushlight.qint8:
            return rushlight.ops.quantized.linear_unpack(self._packed_params)
        if self.dtype == rushlight.float16:
            return rushlight.ops.quantized.linear_unpack_fp16(self._packed_params)
        raise RuntimeError("Unsupported dtype on dynamic quantized linear!")

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        version = local_metadata.get("version")
        # Version 1 knew no dtype; before 3 the weight and the bias were two entries.
        self.dtype = rushlight.qint8 if version is None or version < 2 else state_dict.pop(prefix + "dtype")
        if version is None or version < 3:
            self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        else:
            self.set_weight_bias(*state_dict.pop(prefix + "_packed_params"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing, unexpected, errors)

    def __repr__(self):
        return repr(self._weight_bias())


class Linear(WeightedQuantizedModule):
    """Linear with integer weights, operands and results."""

    _version = 3
    _FLOAT_MODULE = (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear)

    def __init__(self, in_features, out_features, bias_=True, dtype=rushlight.qint8):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        bias = rushlight.zeros(out_features, dtype=rushlight.float) if bias_ else None
        if dtype == rushlight.qint8:
            weight = rushlight._empty_affine_quantized(
                [out_features, in_features], scale=1, zero_point=0, dtype=rushlight.qint8
            )
        elif dtype == rushlight.float16:
            weight = rushlight.zeros([out_features, in_features], dtype=rushlight.float)
        else:
            raise RuntimeError("Unsupported dtype specified for quantized Linear!")
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(weight, bias)
        self.scale = 1.0
        self.zero_point = 0

    def _get_name(self):
        return "QuantizedLinear"

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self):
        return _hide_packed_params_repr(self, LinearPackedParams)

    def forward(self, x):
        return rushlight.ops.quantized.linear(
            x, self._packed_params._packed_params, self.scale, self.zero_point
        )

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        _save_scale(self, destination, prefix)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        _take_scale(self, state_dict, prefix)
        version = local_metadata.get("version")
        if version is None or version == 1:
            # The weight and the bias were this layer's own.
            state_dict.update(
                {
                    prefix + "_packed_params.weight": state_dict.pop(prefix + "weight"),
                    prefix + "_packed_params.bias": state_dict.pop(prefix + "bias"),
                }
            )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing, unexpected, errors)

    def _weight_bias(self):
        return self._packed_params._weight_bias()

    def weight(self):
        return self._weight_bias()[0]

    def bias(self):
        return self._weight_bias()[1]

    def set_weight_bias(self, w, b):
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a calibrated layer, or one of training."""
        if hasattr(mod, "weight_fake_quant"):
            if type_before_parametrizations(mod) is nniqat.LinearBn1d:
                bn = mod.bn
                mod.weight, mod.bias = fuse_linear_bn_weights(
                    mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
                )
            weight_post_process = mod.weight_fake_quant
            activation = mod.activation_post_process
        else:
            accepted = (
                cls._FLOAT_MODULE if isinstance(cls._FLOAT_MODULE, (tuple, list)) else (cls._FLOAT_MODULE,)
            )
            if type_before_parametrizations(mod) not in accepted:
                names = ", ".join(kind.__name__ for kind in accepted)
                raise AssertionError(
                    f"nnq.{cls.__name__}.from_float only works for {names}, but got: {type(mod)}"
                )
            if not hasattr(mod, "qconfig"):
                raise AssertionError("Input float module must have qconfig defined")
            activation = mod.activation_post_process
            if type_before_parametrizations(mod) is nni.LinearReLU:
                mod = mod[0]
            weight_post_process = (
                mod.qconfig.weight() if not hasattr(mod, "weight_fake_quant") else mod.weight_fake_quant
            )
        if not use_precomputed_fake_quant:
            weight_post_process(mod.weight)
        if weight_post_process.dtype != rushlight.qint8:
            raise AssertionError("Weight observer must have dtype torch.qint8")
        scale, zero_point = activation.calculate_qparams()
        made = cls(mod.in_features, mod.out_features, dtype=weight_post_process.dtype)
        made.set_weight_bias(_quantize_weight(mod.weight.float(), weight_post_process), mod.bias)
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear, output_scale, output_zero_point):
        """From a layer of a reference model, which computes with numbers on rounded weights."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made
