"""Dropout in a model that is done with training: nothing is dropped."""

from rushlight import nn

__all__ = ["Dropout"]


class Dropout(nn.Dropout):
    """Passes integers on."""

    def forward(self, input):
        return input

    def _get_name(self):
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod, scale, zero_point):
        return cls(mod.p, mod.inplace)
