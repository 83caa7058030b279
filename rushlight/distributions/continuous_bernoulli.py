"""The continuous Bernoulli distribution."""

import math
from collections.abc import Sequence

import rushlight as torch
from rushlight.distributions import constraints
from rushlight.distributions._probs import BinaryParameters
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import clamp_probs, lazy_property, logits_to_probs
from rushlight.nn.functional import binary_cross_entropy_with_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryParameters, ExponentialFamily):
    """Continuous Bernoulli distribution on [0, 1]: Loaiza-Ganem and Cunningham (2019).

    Within `lims`, around probs = 1/2 where the formulas are 0/0, Taylor series take their place."""

    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True
    _expanded = BinaryParameters._expanded

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        batch_shape = self._set_binary(probs, logits)
        if logits is None:
            # Check before clamping hides what was wrong.
            if validate_args is not None:
                self._validate_args = validate_args
            if self._validate_args and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = self._param = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(batch_shape, validate_args=validate_args)

    @lazy_property
    def probs(self):
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _copy_expanded(self, new, batch_shape):
        super()._copy_expanded(new, batch_shape)
        new._lims = self._lims

    def _is_regular(self):
        return torch.max(torch.le(self.probs, self._lims[0]), torch.gt(self.probs, self._lims[1]))

    def _regular_probs(self):
        """Probabilities where the formulas hold, elsewhere a number that keeps them finite."""
        return torch.where(self._is_regular(), self.probs, self._lims[0] * torch.ones_like(self.probs))

    def _cont_bern_log_norm(self):
        """The log of the normalising constant."""
        p = self._regular_probs()
        below = torch.where(torch.le(p, 0.5), p, torch.zeros_like(p))
        above = torch.where(torch.ge(p, 0.5), p, torch.ones_like(p))
        regular = torch.log(torch.abs(torch.log1p(-p) - torch.log(p))) - torch.where(
            torch.le(p, 0.5), torch.log1p(-2.0 * below), torch.log(2.0 * above - 1.0)
        )
        x = torch.pow(self.probs - 0.5, 2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return torch.where(self._is_regular(), regular, taylor)

    @property
    def mean(self):
        p = self._regular_probs()
        regular = p / (2.0 * p - 1.0) + 1.0 / (torch.log1p(-p) - torch.log(p))
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * torch.pow(x, 2)) * x
        return torch.where(self._is_regular(), regular, taylor)

    @property
    def stddev(self):
        return torch.sqrt(self.variance)

    @property
    def variance(self):
        p = self._regular_probs()
        regular = p * (p - 1.0) / torch.pow(1.0 - 2.0 * p, 2) + 1.0 / torch.pow(
            torch.log1p(-p) - torch.log(p), 2
        )
        x = torch.pow(self.probs - 0.5, 2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return torch.where(self._is_regular(), regular, taylor)

    def sample(self, sample_shape: Sequence[int] = torch.Size()):
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = torch.Size()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = torch.broadcast_tensors(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        p = self._regular_probs()
        regular = (torch.pow(p, value) * torch.pow(1.0 - p, 1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = torch.where(self._is_regular(), regular, value)
        zeros, ones = torch.zeros_like(value), torch.ones_like(value)
        return torch.where(torch.le(value, 0.0), zeros, torch.where(torch.ge(value, 1.0), ones, inside))

    def icdf(self, value):
        p = self._regular_probs()
        regular = (torch.log1p(-p + value * (2.0 * p - 1.0)) - torch.log1p(-p)) / (
            torch.log(p) - torch.log1p(-p)
        )
        return torch.where(self._is_regular(), regular, value)

    def entropy(self):
        log_p0 = torch.log1p(-self.probs)
        log_p1 = torch.log(self.probs)
        return self.mean * (log_p0 - log_p1) - self._cont_bern_log_norm() - log_p0

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        """log of the integral of exp(x t) over [0, 1]."""
        regular = torch.max(torch.le(x, self._lims[0] - 0.5), torch.gt(x, self._lims[1] - 0.5))
        safe = torch.where(regular, x, (self._lims[0] - 0.5) * torch.ones_like(x))
        log_norm = torch.log(torch.abs(torch.special.expm1(safe))) - torch.log(torch.abs(safe))
        taylor = 0.5 * x + torch.pow(x, 2) / 24.0 - torch.pow(x, 4) / 2880.0
        return torch.where(regular, log_norm, taylor)
