"""The linear layer with integer weights, then ReLU; operands get their scale at each call."""

import rushlight
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn.quantized.dynamic.modules.linear import Linear

__all__ = ["LinearReLU"]


class LinearReLU(Linear):
    """Linear with integer weights, then ReLU."""

    _FLOAT_MODULE = nni.LinearReLU

    def forward(self, x):
        packed = self._packed_params._packed_params
        if self._packed_params.dtype == rushlight.qint8:
            return rushlight.ops.quantized.linear_relu_dynamic(x, packed, reduce_range=True)
        if self._packed_params.dtype == rushlight.float16:
            return rushlight.ops.quantized.linear_relu_dynamic_fp16(x, packed)
        raise RuntimeError("Unsupported dtype on dynamic quantized linear relu!")

    def _get_name(self):
        return "DynamicQuantizedLinearReLU"

    @classmethod
    def from_reference(cls, ref_qlinear_relu):
        return super().from_reference(ref_qlinear_relu[0])
