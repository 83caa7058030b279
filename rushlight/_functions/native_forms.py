"""Functions of the top namespace in their native signatures, over those of ``torch.nn.functional``.

Reductions are numbers here: 0 none, 1 mean, 2 sum; so are interpolation and padding modes.
"""

import rushlight as torch
from rushlight._operators.overridable import make_overridable
from rushlight.nn import functional as F

__capture__ = "through"  # Note [Capture marks]

_REDUCTIONS = ("none", "mean", "sum")


def _reduction(number):
    if number not in (0, 1, 2):
        raise ValueError(f"reduction must be 0 (none), 1 (mean) or 2 (sum), but got {number}")
    return _REDUCTIONS[number]


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """Cosine of the angle between vectors along `dim`."""
    return F.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of the differences along the last dimension."""
    return F.pairwise_distance(x1, x2, p, eps, keepdim)


def bilinear(input1, input2, weight, bias=None):
    """x1 @ weight[k] @ x2 + bias[k] for each output k."""
    return F.bilinear(input1, input2, weight, bias)


def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=1):
    """Binary cross entropy of logits."""
    return F.binary_cross_entropy_with_logits(
        input, target, weight, reduction=_reduction(reduction), pos_weight=pos_weight
    )


def kl_div(input, target, reduction=1, *, log_target=False):
    """Kullback-Leibler divergence of log-probabilities `input` from `target`."""
    pointwise = F.kl_div(input, target, reduction="none", log_target=log_target)
    reduction = _reduction(reduction)
    return pointwise if reduction == "none" else getattr(pointwise, reduction)()


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=1):
    """1 - cosine for pairs of target 1, the cosine above `margin` for those of -1."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_reduction(reduction))


def hinge_embedding_loss(input, target, margin=1.0, reduction=1):
    """The input for target 1, what it lacks of `margin` for -1."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_reduction(reduction))


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=1):
    """max(0, -target (input1 - input2) + margin)."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_reduction(reduction))


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_reduction(reduction)
    )


def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """Negative log likelihood of Poisson counts."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_reduction(reduction))


def instance_norm(
    input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled
):
    """Normalises every channel of every sample."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def conv_tbc(input, weight, bias, pad=0):
    """Convolution over the first dimension of [time, batch, channels]; weight is [width, in, out]."""
    if input.dim() != 3 or weight.dim() != 3:
        raise RuntimeError(
            f"conv_tbc: expected 3-dim input and weight, got {input.dim()}-dim and {weight.dim()}-dim"
        )
    result = F.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return result.permute(2, 0, 1)


def norm_except_dim(v, pow=2, dim=0):
    """Norms of the slices along `dim`, kept as dimensions of size 1; the norm of everything for -1."""
    if dim == -1:
        return torch.linalg.vector_norm(v, pow)
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return torch.linalg.vector_norm(v, pow, others, True) if others else v.abs()


def batch_norm_stats(input, eps):
    """Mean and 1 / sqrt(variance + eps) of every channel."""
    dims = [0, *range(2, input.dim())]
    variance, mean = torch.var_mean(input, dims, correction=0)
    return mean, torch.rsqrt(variance + eps)


def batch_norm_elemt(input, weight, bias, mean, invstd, eps):
    """Normalises with statistics that are given."""
    shape = [1, -1] + [1] * (input.dim() - 2)
    result = (input - mean.view(shape)) * invstd.view(shape)
    if weight is not None:
        result = result * weight.view(shape)
    return result if bias is None else result + bias.view(shape)


make_overridable(globals(), skip=["make_overridable"], belong_to_top=True)
