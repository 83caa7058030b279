"""A linear layer with rounded weights that normalisation is folded into."""

import rushlight
from rushlight import nn
from rushlight.ao.nn.intrinsic.modules import fused
from rushlight.ao.nn.qat.modules.linear import Linear
from rushlight.nn import functional as F
from rushlight.nn.utils.fusion import fuse_linear_bn_weights

from ._folded_norm import FoldedNorm, share_statistics

__all__ = ["LinearBn1d"]


class LinearBn1d(FoldedNorm, Linear, fused._FusedModule):
    """Linear and BatchNorm1d. The weight is rounded with normalisation's factor in it, as it will be used."""

    def __init__(
        self, in_features, out_features, bias=True, eps=1e-05, momentum=0.1, freeze_bn=False, qconfig=None
    ):
        super().__init__(in_features, out_features, bias, qconfig)
        self.freeze_bn = freeze_bn if self.training else True
        rounding = self._modules.pop("weight_fake_quant")
        self.bn = nn.BatchNorm1d(out_features, eps, momentum, True, True)
        self.weight_fake_quant = rounding
        self.reset_bn_parameters()
        if self.training and not freeze_bn:
            self.update_bn_stats()
        else:
            self.freeze_bn_stats()

    def reset_bn_parameters(self):
        self.bn.reset_running_stats()
        nn.init.uniform_(self.bn.weight)
        nn.init.zeros_(self.bn.bias)

    def forward(self, input):
        bn = self.bn
        running = rushlight.sqrt(bn.running_var + bn.eps)
        factor = bn.weight / running
        weight = self.weight_fake_quant(self.weight * factor.reshape(-1, 1))
        # The bias does not pass through the factor, so it is added after the factor is taken back.
        zero = rushlight.zeros_like(bn.bias if self.bias is None else self.bias)
        result = F.linear(input, weight, zero) / factor.reshape(1, -1)
        if self.bias is not None:
            result = result + self.bias.reshape(1, -1)
        return bn(result)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        if type(mod) is not fused.LinearBn1d:
            raise AssertionError(f"qat.{cls.__name__}.from_float only works for {fused.LinearBn1d.__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if not mod.qconfig:
            raise AssertionError("Input float module must have a valid config")
        linear, bn = mod[0], mod[1]
        made = cls(
            linear.in_features,
            linear.out_features,
            linear.bias is not None,
            bn.eps,
            bn.momentum,
            False,
            mod.qconfig,
        )
        made.weight, made.bias = linear.weight, linear.bias
        share_statistics(made.bn, bn)
        return made

    def to_float(self):
        """The linear layer with normalisation folded in."""
        made = nn.Linear(self.in_features, self.out_features)
        bn = self.bn
        made.weight, made.bias = fuse_linear_bn_weights(
            self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        return made
