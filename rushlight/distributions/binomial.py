"""The binomial distribution."""

from collections.abc import Sequence

import rushlight as torch
from rushlight.distributions import constraints
from rushlight.distributions._probs import BinaryParameters

__all__ = ["Binomial"]


def _clamp_by_zero(x):
    # A gradient of one half at zero, where clamp would give 1 or 0.
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(BinaryParameters):
    """Binomial distribution: successes among `total_count` Bernoulli trials with `probs`."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, **BinaryParameters.arg_constraints}
    has_enumerate_support = True
    _expanded = {"total_count": 0, **BinaryParameters._expanded}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        super().__init__(self._set_binary_counts(total_count, probs, logits), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = torch.Size()):
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        log_coefficient = (
            torch.lgamma(self.total_count + 1)
            - torch.lgamma(value + 1)
            - torch.lgamma(self.total_count - value + 1)
        )
        # total * log(1 + exp(logits)), written so that exp never overflows.
        normalizer = self.total_count * _clamp_by_zero(self.logits) + self.total_count * torch.log1p(
            torch.exp(-torch.abs(self.logits))
        )
        return value * self.logits + log_coefficient - normalizer

    def entropy(self):
        total_count = int(self.total_count.max())
        if not self.total_count.min() == total_count:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        total_count = int(self.total_count.max())
        if not self.total_count.min() == total_count:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = torch.arange(1 + total_count, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values
