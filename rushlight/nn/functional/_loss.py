"""Losses composed of other operators."""

import math

import rushlight as torch
from rushlight import Tensor
from rushlight._C import _nn
from rushlight._errors.advice import advised
from rushlight.nn._reduction import get_enum


def _reduced(loss, reduction):
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"{reduction} is not a valid value for reduction")


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Negative log likelihood under a normal distribution with mean input and variance var."""
    if isinstance(var, float):
        if var < 0:
            raise advised(ValueError("var has negative entry/entries"))
        var = var * torch.ones_like(input)
    elif torch.any(var < 0):
        raise advised(ValueError("var has negative entry/entries"))
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif input.dim() != var.dim() or any(v not in (1, i) for i, v in zip(input.shape, var.shape)):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with torch.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function=None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any distance function."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise advised(
            RuntimeError(
                "The anchor, positive, and negative tensors are expected to have the same number of "
                f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and negative "
                f"{negative.dim()}D inputs"
            )
        )
    distance = torch.pairwise_distance if distance_function is None else distance_function
    to_positive = distance(anchor, positive)
    to_negative = distance(anchor, negative)
    if swap:
        to_negative = torch.minimum(to_negative, distance(positive, negative))
    return _reduced((margin + to_positive - to_negative).clamp_min(0), reduction)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options=None,
) -> Tensor:
    """Cross entropy of the outputs of a linear layer."""
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}"
        )
    classes, *out_features, in_features = linear_weight.shape
    if input.size(-1) != in_features:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {input.size(-1)} and {in_features}, respectively"
        )
    if out_features and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires "
            "batched input, "
            f"(N, {in_features}), got unbatched input with shape {tuple(input.shape)}"
        )
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise RuntimeError(
            f"expected linear_bias shape {tuple(linear_weight.shape[:-1])}, got {tuple(linear_bias.shape)}"
        )
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    rows = linear_weight.reshape(math.prod(linear_weight.shape[:-1]), in_features)
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = _nn.linear(input, rows, bias)
    if out_features:
        logits = logits.view(*input.shape[:-1], classes, *out_features)
    return _nn.cross_entropy(
        logits,
        target,
        weight=weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths,
    target_lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Negative log likelihood of targets, summed over their alignments with log_probs of (T, N, C)."""
    kind = get_enum(reduction)
    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, kind, zero_infinity)
