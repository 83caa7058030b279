"""The multivariate normal distribution with a low-rank covariance."""

import math
from collections.abc import Sequence

import rushlight as torch
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv
from rushlight.distributions.utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(W, D):  # noqa: N803
    """The Cholesky factor of I + W^T D^-1 W."""
    m = W.size(-1)
    scaled = W.mT / D.unsqueeze(-2)
    capacitance = torch.matmul(scaled, W).contiguous()
    capacitance.view(-1, m * m)[:, :: m + 1] += 1
    return torch.linalg.cholesky(capacitance)


def _batch_lowrank_logdet(W, D, capacitance_tril):  # noqa: N803
    """log det(W W^T + D) by the matrix determinant lemma."""
    return 2 * capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W, D, x, capacitance_tril):  # noqa: N803
    """x^T (W W^T + D)^-1 x by the Woodbury identity."""
    scaled = W.mT / D.unsqueeze(-2)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, _batch_mv(scaled, x))


class LowRankMultivariateNormal(Distribution):
    """Normal distribution with covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``.

    `loc` and `cov_diag` have shape ``[..., n]``, `cov_factor` ``[..., n, m]``; costs grow with n m^2 only."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _expanded = {
        "loc": 1,
        "cov_factor": 2,
        "cov_diag": 1,
        "scale_tril": 2,
        "covariance_matrix": 2,
        "precision_matrix": 2,
    }

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)

    def _copy_expanded(self, new, batch_shape):
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))

    def _expand_event(self, value, dims):
        return value.expand(self._batch_shape + self._event_shape * dims)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        return self._expand_event(
            self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag, 1
        )

    @lazy_property
    def scale_tril(self):
        # sqrt(D) chol(sqrt(D)^-1 W W^T sqrt(D)^-1 + I): better conditioned than the covariance itself.
        n = self._event_shape[0]
        sqrt_diag = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / sqrt_diag
        inner = torch.matmul(scaled, scaled.mT).contiguous()
        inner.view(-1, n * n)[:, :: n + 1] += 1
        return self._expand_event(sqrt_diag * torch.linalg.cholesky(inner), 2)

    @lazy_property
    def covariance_matrix(self):
        factor = self._unbroadcasted_cov_factor
        product = torch.matmul(factor, factor.mT)
        return self._expand_event(product + torch.diag_embed(self._unbroadcasted_cov_diag), 2)

    @lazy_property
    def precision_matrix(self):
        # The Woodbury identity.
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        a = torch.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        diagonal = torch.diag_embed(self._unbroadcasted_cov_diag.reciprocal())
        return self._expand_event(diagonal - torch.matmul(a.mT, a), 2)

    def rsample(self, sample_shape: Sequence[int] = torch.Size()):
        shape = self._extended_shape(sample_shape)
        low_shape = shape[:-1] + self.cov_factor.shape[-1:]
        low = _standard_normal(low_shape, dtype=self.loc.dtype, device=self.loc.device)
        own = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        correlated = _batch_mv(self._unbroadcasted_cov_factor, low)
        return self.loc + correlated + self._unbroadcasted_cov_diag.sqrt() * own

    def _log_det(self):
        return _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        )

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor,
            self._unbroadcasted_cov_diag,
            value - self.loc,
            self._capacitance_tril,
        )
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self):
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy if len(self._batch_shape) == 0 else entropy.expand(self._batch_shape)
