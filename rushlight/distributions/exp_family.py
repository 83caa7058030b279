"""Exponential families: densities ``h(x) exp(<theta, t(x)> - F(theta))``."""

import rushlight as torch
from rushlight.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution with natural parameters theta, log normaliser F and mean carrier measure E[log h(x)].

    Entropy follows from the gradient of F: the Bregman form of Nielsen and Nock, "Entropies and
    cross-entropies of exponential families" (2010)."""

    @property
    def _natural_params(self):
        raise NotImplementedError(f"{type(self).__name__} does not define natural parameters")

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError(f"{type(self).__name__} does not define its log normaliser")

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError(f"{type(self).__name__} does not define its mean carrier measure")

    def entropy(self):
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        log_normalizer = self._log_normalizer(*natural)
        gradients = torch.autograd.grad(log_normalizer.sum(), natural, create_graph=True)
        result = log_normalizer - self._mean_carrier_measure
        for theta, gradient in zip(natural, gradients, strict=True):
            result = result - (theta * gradient).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
