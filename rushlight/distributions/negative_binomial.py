"""The negative binomial distribution."""

from collections.abc import Sequence

import rushlight as torch
import rushlight.nn.functional as F  # noqa: N812
from rushlight.distributions import constraints
from rushlight.distributions._probs import BinaryParameters
from rushlight.distributions.gamma import Gamma
from rushlight.distributions.utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryParameters):
    """Negative binomial distribution: successes with `probs` before `total_count` failures (which may be
    real)."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _expanded = {"total_count": 0, **BinaryParameters._expanded}

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        super().__init__(self._set_binary_counts(total_count, probs, logits), validate_args=validate_args)

    @property
    def mean(self):
        return self.total_count * torch.exp(self.logits)

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / torch.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        # A mixture of Poisson distributions; the parameters were checked already.
        return Gamma(concentration=self.total_count, rate=torch.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Sequence[int] = torch.Size()):
        with torch.no_grad():
            return torch.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        log_unnormalized = self.total_count * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        log_normalization = (
            -torch.lgamma(self.total_count + value)
            + torch.lgamma(1.0 + value)
            + torch.lgamma(self.total_count)
        )
        log_normalization = log_normalization.masked_fill(self.total_count + value == 0.0, 0.0)
        return log_unnormalized - log_normalization
