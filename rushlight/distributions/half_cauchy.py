"""The half-Cauchy distribution."""

import math

import rushlight as torch
from rushlight.distributions._half import Half
from rushlight.distributions.cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The distribution of |X| for X ~ Cauchy(0, scale)."""

    _expanded = {}

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args=validate_args)

    @property
    def mean(self):
        return torch.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def variance(self):
        return self.base_dist.variance
