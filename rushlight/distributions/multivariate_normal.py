"""The multivariate normal distribution."""

import math
from collections.abc import Sequence

import rushlight as torch
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat, bvec):
    """Matrices ``[..., n, m]`` times vectors ``[..., m]``, both batched."""
    return torch.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL, bx):  # noqa: N803
    """x^T (L L^T)^-1 x for Cholesky factors ``[..., n, n]`` and vectors ``[..., n]``.

    Where x has more batch dimensions than L, those are solved together instead of copying L."""
    n = bx.size(-1)
    batch_shape = bx.shape[:-1]
    extra = len(batch_shape) - (bL.dim() - 2)
    outer, inner = batch_shape[:extra], bL.shape[:-2]
    # Split each dimension of x into the one L has and the one over which L would be broadcast.
    split = list(outer)
    for size, own in zip(batch_shape[extra:], inner, strict=True):
        split += [size // own, own]
    x = bx.reshape(*split, n)
    kept = [*range(extra), *range(extra, len(split), 2)]
    own = list(range(extra + 1, len(split), 2))
    x = x.permute((*kept, *own, len(split)))
    moved_shape = x.shape[:-1]
    flat_l = bL.reshape(-1, n, n)
    flat_x = x.reshape(-1, flat_l.size(0), n).permute(1, 2, 0)
    solved = torch.linalg.solve_triangular(flat_l, flat_x, upper=False).pow(2).sum(-2)
    distances = solved.t().reshape(moved_shape)
    places = [*kept, *own]
    back = sorted(range(len(places)), key=places.__getitem__)
    return distances.permute(tuple(back)).reshape(batch_shape)


def _precision_to_scale_tril(P):  # noqa: N803
    """The Cholesky factor of P^-1, from the Cholesky factor of P with both orders reversed."""
    factor = torch.linalg.cholesky(torch.flip(P, (-2, -1)))
    inverse = torch.transpose(torch.flip(factor, (-2, -1)), -2, -1)
    identity = torch.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return torch.linalg.solve_triangular(inverse, identity, upper=False)


def one_matrix(batch_of, **given):
    """Name and value of the one matrix that was given, batched; ``ValueError`` otherwise."""
    given = {name: value for name, value in given.items() if value is not None}
    if len(given) != 1:
        raise ValueError(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        )
    ((name, value),) = given.items()
    if value.dim() < 2:
        article = "scale_tril matrix" if name == "scale_tril" else name
        raise ValueError(
            f"{article} must be at least two-dimensional, with optional leading batch dimensions"
        )
    batch_shape = torch.broadcast_shapes(value.shape[:-2], batch_of)
    return name, value.expand(batch_shape + value.shape[-2:]), batch_shape


class MatrixParameters(Distribution):
    """Distributions given by one of a covariance, its inverse or its Cholesky factor
    `_unbroadcasted_scale_tril`; the others are computed when first asked for."""

    def _set_scale_tril(self, name, value):
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = value
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = torch.linalg.cholesky(value)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(value)

    @property
    def _matrix_shape(self):
        n = self._unbroadcasted_scale_tril.size(-1)
        return self._batch_shape + torch.Size((n, n))

    @lazy_property
    def scale_tril(self):
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape)

    @lazy_property
    def covariance_matrix(self):
        lower = self._unbroadcasted_scale_tril
        return torch.matmul(lower, lower.mT).expand(self._matrix_shape)

    @lazy_property
    def precision_matrix(self):
        return torch.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape)


class MultivariateNormal(MatrixParameters):
    """Normal distribution of vectors of n entries with mean `loc` (``[..., n]``) and one of
    `covariance_matrix`,
    `precision_matrix` or lower triangular `scale_tril` (``[..., n, n]``); `scale_tril` needs no
    factorisation."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _expanded = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(
        self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None
    ):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, value, batch_shape = one_matrix(
            loc.shape[:-1],
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        setattr(self, name, value)
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        given = {"scale_tril": scale_tril, "covariance_matrix": covariance_matrix}.get(name, precision_matrix)
        self._set_scale_tril(name, given)

    def _copy_expanded(self, new, batch_shape):
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        variance = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return variance.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = torch.Size()):
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self):
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy if len(self._batch_shape) == 0 else entropy.expand(self._batch_shape)
