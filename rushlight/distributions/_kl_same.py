"""Divergences between two distributions of one type."""

import rushlight as torch
from rushlight import inf
from rushlight.distributions.bernoulli import Bernoulli
from rushlight.distributions.beta import Beta
from rushlight.distributions.binomial import Binomial
from rushlight.distributions.categorical import Categorical
from rushlight.distributions.cauchy import Cauchy
from rushlight.distributions.continuous_bernoulli import ContinuousBernoulli
from rushlight.distributions.dirichlet import Dirichlet
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.exponential import Exponential
from rushlight.distributions.gamma import Gamma
from rushlight.distributions.geometric import Geometric
from rushlight.distributions.gumbel import Gumbel
from rushlight.distributions.half_normal import HalfNormal
from rushlight.distributions.independent import Independent
from rushlight.distributions.kl import _batch_trace_xxt, _euler_gamma, kl_divergence, register_kl
from rushlight.distributions.laplace import Laplace
from rushlight.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from rushlight.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis
from rushlight.distributions.normal import Normal
from rushlight.distributions.one_hot_categorical import OneHotCategorical
from rushlight.distributions.pareto import Pareto
from rushlight.distributions.poisson import Poisson
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.uniform import Uniform
from rushlight.distributions.utils import _sum_rightmost


def _masked(t, condition, value):
    """`t` with `value` where the condition holds, in place as its dtype allows."""
    t[condition] = value
    return t


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    softplus = torch.nn.functional.softplus
    t1 = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    t1 = _masked(_masked(t1, q.probs == 0, inf), p.probs == 0, 0)
    t2 = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    t2 = _masked(_masked(t2, q.probs == 1, inf), p.probs == 1, 0)
    return t1 + t2


@register_kl(Beta, Beta)
def _beta(p, q):
    total_p = p.concentration1 + p.concentration0
    total_q = q.concentration1 + q.concentration0
    t1 = q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
    t2 = p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma()
    t3 = (p.concentration1 - q.concentration1) * torch.digamma(p.concentration1)
    t4 = (p.concentration0 - q.concentration0) * torch.digamma(p.concentration0)
    t5 = (total_q - total_p) * torch.digamma(total_p)
    return t1 - t2 + t3 + t4 + t5


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    kl[p.total_count > q.total_count] = inf
    return kl


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    t = p.probs * (p.logits - q.logits)
    t[(q.probs == 0).expand_as(t)] = inf
    t[(p.probs == 0).expand_as(t)] = 0
    return t.sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    t1 = p.mean * (p.logits - q.logits)
    t2 = p._cont_bern_log_norm() + torch.log1p(-p.probs)
    t3 = -q._cont_bern_log_norm() - torch.log1p(-q.probs)
    return t1 + t2 + t3


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    t1 = total_p.lgamma() - total_q.lgamma()
    t2 = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    t3 = p.concentration - q.concentration
    t4 = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return t1 - t2 + (t3 * t4).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot "
            "be computed using Bregman divergences"
        )
    natural_p = [theta.detach().requires_grad_() for theta in p._natural_params]
    natural_q = q._natural_params
    normalizer = p._log_normalizer(*natural_p)
    gradients = torch.autograd.grad(normalizer.sum(), natural_p, create_graph=True)
    result = q._log_normalizer(*natural_q) - normalizer
    for theta_p, theta_q, g in zip(natural_p, natural_q, gradients, strict=True):
        result = result - _sum_rightmost((theta_q - theta_p) * g, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    t1 = q.concentration * (p.rate / q.rate).log()
    t2 = torch.lgamma(q.concentration) - torch.lgamma(p.concentration)
    t3 = (p.concentration - q.concentration) * torch.digamma(p.concentration)
    t4 = (q.rate - p.rate) * (p.concentration / p.rate)
    return t1 + t2 + t3 + t4


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ct1 = p.scale / q.scale
    ct2 = q.loc / q.scale
    ct3 = p.loc / q.scale
    t1 = -ct1.log() - ct2 + ct3
    t2 = ct1 * _euler_gamma
    t3 = torch.exp(ct2 + (1 + ct1).lgamma() - ct3)
    return t1 + t2 + t3 - (1 + _euler_gamma)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    # From http://www.mast.queensu.ca/~communications/Papers/gil-msc11.pdf
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    t1 = -ratio.log()
    t2 = distance / q.scale
    t3 = ratio * torch.exp(-distance / p.scale)
    return t1 + t2 + t3 - 1


def _same_event(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between {type(p).__name__} and {type(q).__name__} with different event shapes "
            f"({tuple(p.event_shape)} and {tuple(q.event_shape)}) cannot be computed"
        )


def _log_det_term(q, p):
    """The half log determinants' difference of two normals given by Cholesky factors."""
    half_q = q._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    half_p = p._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return half_q - half_p


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank_normal(p, q):
    _same_event(p, q)
    q_factor, q_diag = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
    p_factor, p_diag = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    term1 = _batch_lowrank_logdet(q_factor, q_diag, q._capacitance_tril) - _batch_lowrank_logdet(
        p_factor, p_diag, p._capacitance_tril
    )
    term3 = _batch_lowrank_mahalanobis(q_factor, q_diag, q.loc - p.loc, q._capacitance_tril)
    # tr(inv(qcov) pcov) by the Woodbury identity: (inv(qD) - A^T A)(pW pW^T + pD), A = inv(qL) qW^T inv(qD).
    scaled = q_factor.mT / q_diag.unsqueeze(-2)
    a = torch.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)
    term21 = (p_diag / q_diag).sum(-1)
    term22 = _batch_trace_xxt(p_factor * q_diag.rsqrt().unsqueeze(-1))
    term23 = _batch_trace_xxt(a * p_diag.sqrt().unsqueeze(-2))
    term24 = _batch_trace_xxt(a.matmul(p_factor))
    term2 = term21 + term22 - term23 - term24
    return 0.5 * (term1 + term2 + term3 - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _normal_low_rank(p, q):
    _same_event(p, q)
    q_factor, q_diag = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
    half_p = p._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    term1 = _batch_lowrank_logdet(q_factor, q_diag, q._capacitance_tril) - 2 * half_p
    term3 = _batch_lowrank_mahalanobis(q_factor, q_diag, q.loc - p.loc, q._capacitance_tril)
    scaled = q_factor.mT / q_diag.unsqueeze(-2)
    a = torch.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)
    term21 = _batch_trace_xxt(p._unbroadcasted_scale_tril * q_diag.rsqrt().unsqueeze(-1))
    term22 = _batch_trace_xxt(a.matmul(p._unbroadcasted_scale_tril))
    return 0.5 * (term1 + term21 - term22 + term3 - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_to_normal(p, q):
    _same_event(p, q)
    p_factor, p_diag = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    half_q = q._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    term1 = 2 * half_q - _batch_lowrank_logdet(p_factor, p_diag, p._capacitance_tril)
    term3 = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    combined = torch.broadcast_shapes(q._unbroadcasted_scale_tril.shape[:-2], p_factor.shape[:-2])
    n = p.event_shape[0]
    q_tril = q._unbroadcasted_scale_tril.expand(combined + (n, n))
    factor = p_factor.expand(combined + (n, p.cov_factor.size(-1)))
    diagonal = torch.diag_embed(p_diag.sqrt()).expand(combined + (n, n))
    term21 = _batch_trace_xxt(torch.linalg.solve_triangular(q_tril, factor, upper=False))
    term22 = _batch_trace_xxt(torch.linalg.solve_triangular(q_tril, diagonal, upper=False))
    return 0.5 * (term1 + term21 + term22 + term3 - n)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    # From https://en.wikipedia.org/wiki/Multivariate_normal_distribution#Kullback%E2%80%93Leibler_divergence
    _same_event(p, q)
    n = p.event_shape[0]
    combined = torch.broadcast_shapes(
        q._unbroadcasted_scale_tril.shape[:-2], p._unbroadcasted_scale_tril.shape[:-2]
    )
    q_tril = q._unbroadcasted_scale_tril.expand(combined + (n, n))
    p_tril = p._unbroadcasted_scale_tril.expand(combined + (n, n))
    trace = _batch_trace_xxt(torch.linalg.solve_triangular(q_tril, p_tril, upper=False))
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return _log_det_term(q, p) + 0.5 * (trace + distance - n)


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    # From http://www.mast.queensu.ca/~communications/Papers/gil-msc11.pdf
    ratio = p.scale / q.scale
    alpha_ratio = q.alpha / p.alpha
    result = q.alpha * ratio.log() - alpha_ratio.log() + alpha_ratio - 1
    result[p.support.lower_bound < q.support.lower_bound] = inf
    return result


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms:
        raise NotImplementedError(
            "KL(p || q) of transformed distributions needs equal transforms, got "
            f"{p.transforms} and {q.transforms}"
        )
    if p.event_shape != q.event_shape:
        raise NotImplementedError(
            "KL(p || q) of transformed distributions needs equal event shapes, got "
            f"{p.event_shape} and {q.event_shape}"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    result[(q.low > p.low) | (q.high < p.high)] = inf
    return result


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "KL(p || q) of Independent distributions needs equal reinterpreted_batch_ndims, got "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    # From https://arxiv.org/abs/1905.10965
    t1 = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    t2 = (4 * p.scale * q.scale).log()
    return t1 - t2
