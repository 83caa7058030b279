"""A linear layer with rounded weights."""

from rushlight import nn
from rushlight.ao.nn.intrinsic.modules.fused import _FusedModule
from rushlight.nn import functional as F
from rushlight.nn.utils.parametrize import is_parametrized, transfer_parametrizations_and_params
from rushlight.nn.utils.parametrize import type_before_parametrizations as kind_of

from ._rounding import check_source, round_weights

__all__ = ["Linear"]


class Linear(nn.Linear):
    """Linear whose weight passes through ``weight_fake_quant`` at each call."""

    _FLOAT_MODULE = nn.Linear

    def __init__(self, in_features, out_features, bias=True, qconfig=None, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        round_weights(self, qconfig, device, dtype)

    def forward(self, input):
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a plain layer, or a fused one; weights are shared."""
        check_source(cls, mod, kind_of(mod))
        plain = mod[0] if isinstance(mod, _FusedModule) else mod
        made = cls(
            plain.in_features,
            plain.out_features,
            bias=plain.bias is not None,
            qconfig=getattr(plain, "qconfig", mod.qconfig),
        )
        if is_parametrized(plain, "weight"):
            transfer_parametrizations_and_params(plain, made, "weight")
        else:
            made.weight = plain.weight
        if is_parametrized(plain, "bias"):
            transfer_parametrizations_and_params(plain, made, "bias")
        else:
            made.bias = plain.bias
        return made

    def to_float(self):
        """The plain layer with these weights."""
        made = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        made.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            made.bias = nn.Parameter(self.bias.detach())
        made.train(self.training)
        return made
