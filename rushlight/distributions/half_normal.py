"""The half-normal distribution."""

import math

from rushlight.distributions._half import Half
from rushlight.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The distribution of |X| for X ~ Normal(0, scale)."""

    _expanded = {}

    def __init__(self, scale, validate_args=None):
        super().__init__(Normal(0, scale, validate_args=False), validate_args=validate_args)

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return self.scale.pow(2) * (1 - 2 / math.pi)
