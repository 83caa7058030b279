"""Convolutions of integers, then ReLU."""

import rushlight
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn.intrinsic import qat as nniqat
from rushlight.ao.nn.quantized.modules import conv
from rushlight.nn.utils.fusion import fuse_conv_bn_weights

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d"]


class _ThenReLU:
    """What the three share."""

    _CONV_BN_RELU: type

    def _get_name(self):
        return f"QuantizedConvReLU{self._dims}d"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        if type(mod) is cls._CONV_BN_RELU:
            bn = mod.bn
            mod.weight, mod.bias = fuse_conv_bn_weights(
                mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
            )
        return super().from_float(mod, use_precomputed_fake_quant)

    @classmethod
    def from_reference(cls, ref_qconv, output_scale, output_zero_point):
        if type(ref_qconv) is cls._FLOAT_MODULE:
            ref_qconv = ref_qconv[0]
        return super().from_reference(ref_qconv, output_scale, output_zero_point)


class ConvReLU1d(_ThenReLU, conv.Conv1d):
    """Conv1d of integers, then ReLU."""

    _FLOAT_MODULE = nni.ConvReLU1d
    _CONV_BN_RELU = nniqat.ConvBnReLU1d

    def forward(self, input):
        return rushlight.ops.quantized.conv1d_relu(
            self._bordered(input), self._packed_params, self.scale, self.zero_point
        )


class ConvReLU2d(_ThenReLU, conv.Conv2d):
    """Conv2d of integers, then ReLU."""

    _FLOAT_MODULE = nni.ConvReLU2d
    _CONV_BN_RELU = nniqat.ConvBnReLU2d

    def forward(self, input):
        return rushlight.ops.quantized.conv2d_relu(
            self._bordered(input), self._packed_params, self.scale, self.zero_point
        )


class ConvReLU3d(_ThenReLU, conv.Conv3d):
    """Conv3d of integers, then ReLU."""

    _FLOAT_MODULE = nni.ConvReLU3d
    _CONV_BN_RELU = nniqat.ConvBnReLU3d

    def forward(self, input):
        return rushlight.ops.quantized.conv3d_relu(
            self._bordered(input), self._packed_params, self.scale, self.zero_point
        )
