"""The Weibull distribution."""

import rushlight as torch
from rushlight.distributions import constraints
from rushlight.distributions.exponential import Exponential
from rushlight.distributions.gumbel import euler_constant
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import AffineTransform, PowerTransform
from rushlight.distributions.utils import broadcast_all

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Weibull distribution with `scale` (lambda) and shape `concentration` (k)."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _expanded = {}

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(torch.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _copy_expanded(self, new, batch_shape):
        self._expand_parameters(new, batch_shape, "scale", "concentration")
        new.concentration_reciprocal = new.concentration.reciprocal()

    @property
    def mean(self):
        return self.scale * torch.exp(torch.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self):
        inner = (self.concentration - 1) / self.concentration
        return self.scale * inner.pow(self.concentration.reciprocal())

    @property
    def variance(self):
        second = torch.exp(torch.lgamma(1 + 2 * self.concentration_reciprocal))
        first = torch.exp(2 * torch.lgamma(1 + self.concentration_reciprocal))
        return self.scale.pow(2) * (second - first)

    def entropy(self):
        return (
            euler_constant * (1 - self.concentration_reciprocal)
            + torch.log(self.scale * self.concentration_reciprocal)
            + 1
        )
