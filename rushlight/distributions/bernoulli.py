"""The Bernoulli distribution."""

from collections.abc import Sequence

import rushlight as torch
from rushlight import nan
from rushlight.distributions import constraints
from rushlight.distributions._probs import BinaryParameters
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Bernoulli"]


class Bernoulli(BinaryParameters, ExponentialFamily):
    """Bernoulli distribution over {0, 1}: 1 with probability `probs`, whose log odds are `logits`."""

    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _expanded = BinaryParameters._expanded

    def __init__(self, probs=None, logits=None, validate_args=None):
        super().__init__(self._set_binary(probs, logits), validate_args=validate_args)

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = nan
        return mode

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = torch.Size()):
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = torch.broadcast_tensors(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand=True):
        values = torch.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values

    @property
    def _natural_params(self):
        return (torch.logit(self.probs),)

    def _log_normalizer(self, x):
        return torch.log1p(torch.exp(x))
