"""A convolution of integers, then the sum with another operand."""

import rushlight
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn.quantized.modules import conv

__all__ = ["ConvAdd2d", "ConvAddReLU2d"]


class ConvAdd2d(conv.Conv2d):
    """Conv2d of integers, then a sum."""

    _FLOAT_MODULE = nni.ConvAdd2d

    def forward(self, input, extra_input):
        return rushlight.ops.quantized.conv2d_add(
            self._bordered(input), extra_input, self._packed_params, self.scale, self.zero_point
        )

    def _get_name(self):
        return "QuantizedConvAdd2d"

    @classmethod
    def from_reference(cls, ref_qconv, output_scale, output_zero_point):
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)


class ConvAddReLU2d(conv.Conv2d):
    """Conv2d of integers, a sum, then ReLU."""

    _FLOAT_MODULE = nni.ConvAddReLU2d

    def forward(self, input, extra_input):
        return rushlight.ops.quantized.conv2d_add_relu(
            self._bordered(input), extra_input, self._packed_params, self.scale, self.zero_point
        )

    def _get_name(self):
        return "QuantizedConvAddReLU2d"

    @classmethod
    def from_reference(cls, ref_qconv, output_scale, output_zero_point):
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)
