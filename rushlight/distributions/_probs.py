"""Distributions that take either probabilities or logits."""

from numbers import Number

import rushlight as torch
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def take_one(probs, logits):
    """Raises ``ValueError`` unless exactly one of both was given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class BinaryParameters(Distribution):
    """`probs` or `logits` of one event; the other one is computed when first asked for."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    _expanded = {"probs": 0, "logits": 0}

    def _set_binary(self, probs, logits):
        """Keeps the given one and returns its batch shape."""
        take_one(probs, logits)
        given = logits if probs is None else probs
        (self._param,) = broadcast_all(given)
        setattr(self, "logits" if probs is None else "probs", self._param)
        return torch.Size() if isinstance(given, Number) else self._param.size()

    def _set_binary_counts(self, total_count, probs, logits):
        """The same for a count beside it."""
        take_one(probs, logits)
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        self.total_count, self._param = broadcast_all(total_count, given)
        self.total_count = self.total_count.type_as(self._param)
        setattr(self, name, self._param)
        return self._param.size()

    def _copy_expanded(self, new, batch_shape):
        new._param = new.__dict__["probs"] if "probs" in new.__dict__ else new.__dict__["logits"]

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self):
        return self._param.size()
