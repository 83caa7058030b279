"""The generalised Pareto distribution."""

from collections.abc import Sequence

import rushlight as torch
from rushlight import inf
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.normal import batch_shape_of
from rushlight.distributions.utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Generalised Pareto distribution: exceedances over `loc`, with `scale` and tail index `concentration`.

    Concentration 0 is the exponential distribution, -1 the uniform one."""

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _expanded = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(batch_shape_of((loc, scale, concentration), self.loc), validate_args=validate_args)

    def _is_exponential(self):
        return torch.isclose(self.concentration, torch.zeros_like(self.concentration))

    def _safe_concentration(self):
        return torch.where(self._is_exponential(), torch.ones_like(self.concentration), self.concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        lower = self.loc
        upper = torch.where(
            self.concentration < 0, lower - self.scale / self.concentration, torch.full_like(lower, inf)
        )
        return constraints.interval(lower, upper)

    @property
    def mean(self):
        k = self.concentration
        return torch.where(k < 1, self.loc + self.scale / (1 - k), torch.full_like(k, inf))

    @property
    def variance(self):
        k = self.concentration
        finite = self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k))
        return torch.where(k < 0.5, finite, torch.full_like(k, inf))

    @property
    def mode(self):
        return self.loc

    def rsample(self, sample_shape: Sequence[int] = torch.Size()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def _standardize(self, value):
        return (value - self.loc) / self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z, k = self._standardize(value), self._safe_concentration()
        general = -torch.log(self.scale) - (k + 1) / k * torch.log1p(k * z)
        result = torch.where(self._is_exponential(), -torch.log(self.scale) - z, general)
        return torch.where(torch.isnan(result), torch.full_like(result, -inf), result)

    def log_survival_function(self, value):
        """log P(X > value)."""
        if self._validate_args:
            self._validate_sample(value)
        z, k = self._standardize(value), self._safe_concentration()
        return torch.where(self._is_exponential(), -z, -torch.log1p(k * z) / k)

    def log_cdf(self, value):
        """log P(X <= value)."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value):
        return torch.exp(self.log_cdf(value))

    def icdf(self, value):
        k = self._safe_concentration()
        exceed = torch.log1p(-value)
        z = torch.where(self._is_exponential(), -exceed, torch.expm1(-k * exceed) / k)
        return self.loc + self.scale * z

    def entropy(self):
        return torch.log(self.scale) + self.concentration + 1
