"""A linear layer with rounded weights, then ReLU."""

from rushlight import nn
from rushlight.ao.nn.intrinsic.modules import fused
from rushlight.ao.nn.qat.modules.linear import Linear
from rushlight.nn import functional as F


class LinearReLU(Linear, fused._FusedModule):
    """Linear with rounded weights, then ReLU."""

    _FLOAT_MODULE = fused.LinearReLU

    def __init__(self, in_features, out_features, bias=True, qconfig=None):
        super().__init__(in_features, out_features, bias, qconfig)

    def forward(self, input):
        return F.relu(F.linear(input, self.weight_fake_quant(self.weight), self.bias))

    def to_float(self):
        made = fused.LinearReLU(super().to_float(), nn.ReLU())
        made.train(self.training)
        return made
