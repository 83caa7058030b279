"""The LKJ distribution of correlation matrices."""

import math
from collections.abc import Sequence

import rushlight as torch
from rushlight.distributions import constraints
from rushlight.distributions.beta import Beta
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L of `dim` x `dim` correlation matrices M = L L^T with density proportional to
    det(M) ** (concentration - 1); 1 is uniform over correlation matrices.

    Samples by the onion method: Lewandowski, Kurowicka and Joe, "Generating random correlation matrices
    based on vines and extended onion method" (2009)."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _expanded = {"concentration": 0}

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        batch_shape = self.concentration.size()
        # The radius of row i of the factor: squared, a beta variable.
        marginal = self.concentration + 0.5 * (self.dim - 2)
        offset = torch.arange(self.dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = torch.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(batch_shape, torch.Size((dim, dim)), validate_args)

    def _copy_expanded(self, new, batch_shape):
        new.dim = self.dim
        new._beta = self._beta.expand(batch_shape + (self.dim,))

    def sample(self, sample_shape: Sequence[int] = torch.Size()):
        squared_radius = self._beta.sample(sample_shape).unsqueeze(-1)
        normals = torch.randn(
            self._extended_shape(sample_shape), dtype=squared_radius.dtype, device=squared_radius.device
        ).tril(-1)
        directions = normals / normals.norm(dim=-1, keepdim=True)
        directions[..., 0, :].fill_(0.0)  # the first row is empty: 0 / 0
        rows = torch.sqrt(squared_radius) * directions
        # What is left of each row's unit length goes on the diagonal.
        eps = torch.finfo(rows.dtype).tiny
        rest = torch.clamp(1 - torch.sum(rows**2, dim=-1), min=eps).sqrt()
        return rows + torch.diag_embed(rest)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        # The determinant's power and the Jacobian of L -> L L^T, both powers of the diagonal.
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = torch.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = torch.sum(order * diagonal.log(), dim=-1)
        # Equation 16 on page 1999 of the paper.
        below = self.dim - 1
        alpha = self.concentration + 0.5 * below
        denominator = torch.lgamma(alpha) * below
        numerator = torch.mvlgamma(alpha - 0.5, below)
        return unnormalized - (0.5 * below * math.log(math.pi) + numerator - denominator)
