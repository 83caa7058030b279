"""The Wishart distribution."""

import math
import warnings
from collections.abc import Sequence
from numbers import Number

import rushlight as torch
from rushlight import nan
from rushlight.distributions import constraints
from rushlight.distributions.chi2 import Chi2
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.multivariate_normal import (
    MatrixParameters,
    one_matrix,
)

__all__ = ["Wishart"]

_log_2 = math.log(2)


def _mvdigamma(x, p):
    """The derivative of the multivariate log gamma function of order p."""
    if not x.gt((p - 1) / 2).all():
        raise ValueError("Wrong domain for multivariate digamma function.")
    steps = torch.arange(p, dtype=x.dtype, device=x.device).div(2)
    return torch.digamma(x.unsqueeze(-1) - steps.expand(x.shape + (-1,))).sum(-1)


def _clamp_above_eps(x):
    return x.clamp(min=torch.finfo(x.dtype).eps)


class Wishart(MatrixParameters, ExponentialFamily):
    """Wishart distribution of positive definite n x n matrices: sums of `df` outer products of normal
    vectors.

    The scale matrix is given by one of `covariance_matrix`, `precision_matrix` or `scale_tril`; `df` > n -
    1. Samples by the Bartlett decomposition; singular ones are drawn again."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _expanded = {"df": 0, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    @property
    def arg_constraints(self):
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None
    ):
        df_shape = torch.Size() if isinstance(df, Number) else df.shape
        name, value, batch_shape = one_matrix(
            df_shape,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        event_shape = value.shape[-2:]
        df = torch.tensor(df, dtype=value.dtype, device=value.device) if isinstance(df, Number) else df
        self.df = df.expand(batch_shape)
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}."
            )
        setattr(self, name, value)
        if self.df.lt(event_shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._set_scale_tril(name, value)
        self._dist_chi2 = self._make_chi2()

    def _make_chi2(self):
        n = self._event_shape[0]
        steps = torch.arange(n, dtype=self._unbroadcasted_scale_tril.dtype, device=self.df.device)
        df = self.df.unsqueeze(-1) - steps.expand(self._batch_shape + (-1,))
        return Chi2(df=df)

    def _copy_expanded(self, new, batch_shape):
        new._batch_shape, new._event_shape = batch_shape, self._event_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(batch_shape + self._event_shape)
        new._dist_chi2 = new._make_chi2()

    @property
    def mean(self):
        return self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mode(self):
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = torch.where(factor <= 0, nan, factor)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self):
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view(self._batch_shape + (1, 1)) * (v.pow(2) + products)

    def _bartlett_sampling(self, sample_shape: Sequence[int] = torch.Size()):
        n = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape)
        noise = _clamp_above_eps(noise).sqrt().diag_embed(dim1=-2, dim2=-1)
        i, j = torch.tril_indices(n, n, offset=-1)
        noise[..., i, j] = torch.randn(
            torch.Size(sample_shape) + self._batch_shape + (int(n * (n - 1) / 2),),
            dtype=noise.dtype,
            device=noise.device,
        )
        chol = self._unbroadcasted_scale_tril @ noise
        return chol @ chol.mT

    def rsample(self, sample_shape: Sequence[int] = torch.Size(), max_try_correction=None):
        """As in the base class. Samples that are singular in floating point are drawn again up to
        `max_try_correction` times, ten by default."""
        sample_shape = torch.Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        # PyTorch draws the good ones again here; so do we, for equal seeds to give equal numbers.
        redo = self._over_batch(self.support.check(sample))
        for _ in range(10 if max_try_correction is None else max_try_correction):
            if not redo.any():
                break
            again = self._bartlett_sampling(redo[redo].shape)
            chosen = redo.clone()  # the derivative of the next line keeps it
            sample[chosen] = again
            redo[chosen] = self._over_batch(self.support.check(again).logical_not())
        return sample

    def _over_batch(self, flags):
        dims = tuple(range(-len(self._batch_shape), 0))
        return flags.amax(dims) if dims else flags

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        half_log_det = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        trace = (
            torch.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        )
        return (
            -nu * (p * _log_2 / 2 + half_log_det)
            - torch.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * torch.linalg.slogdet(value).logabsdet
            - trace / 2
        )

    def entropy(self):
        nu, p = self.df, self._event_shape[-1]
        half_log_det = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return (
            (p + 1) * (p * _log_2 / 2 + half_log_det)
            + torch.mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p)
            + nu * p / 2
        )

    @property
    def _natural_params(self):
        nu, p = self.df, self._event_shape[-1]
        return -self.precision_matrix / 2, (nu - p - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        order = y + (p + 1) / 2
        return order * (-torch.linalg.slogdet(-2 * x).logabsdet + _log_2 * p) + torch.mvlgamma(order, p=p)
