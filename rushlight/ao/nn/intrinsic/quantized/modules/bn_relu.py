"""Normalisation by channel of integers, then ReLU."""

from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn.quantized.modules import batchnorm

__all__ = ["BNReLU2d", "BNReLU3d"]


class BNReLU2d(batchnorm.BatchNorm2d):
    """BatchNorm2d of integers, then ReLU."""

    _FLOAT_MODULE = nni.BNReLU2d

    def forward(self, input):
        return self._compute(input, True)

    def _get_name(self):
        return "QuantizedBNReLU2d"

    @classmethod
    def from_reference(cls, bn_relu, output_scale, output_zero_point):
        return super().from_reference(bn_relu[0], output_scale, output_zero_point)


class BNReLU3d(batchnorm.BatchNorm3d):
    """BatchNorm3d of integers, then ReLU."""

    _FLOAT_MODULE = nni.BNReLU3d

    def forward(self, input):
        return self._compute(input, True)

    def _get_name(self):
        return "QuantizedBNReLU3d"

    @classmethod
    def from_reference(cls, bn_relu, output_scale, output_zero_point):
        return super().from_reference(bn_relu[0], output_scale, output_zero_point)
