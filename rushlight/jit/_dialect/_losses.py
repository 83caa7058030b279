"""Losses of `torch.nn.functional` as scripts over operators, which take the reduction as a number."""

# Types are those of scripts, where a dtype is a number.
# mypy: ignore-errors

from typing import Optional

import rushlight as torch
from rushlight import Tensor

# ruff: noqa: UP007, UP045, A002


def number_of(reduction: str) -> int:
    if reduction == "none":
        return 0
    if reduction == "mean":
        return 1
    assert reduction == "sum", "the reduction is not known"
    return 2


def reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean()
    return loss.sum()


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    return torch.ops.aten.cross_entropy_loss(
        input, target, weight, number_of(reduction), ignore_index, label_smoothing
    )


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch.ops.aten.nll_loss_nd(input, target, weight, number_of(reduction), ignore_index)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:
    if weight is not None:
        return reduced(torch.ops.aten.mse_loss(input, target, 0) * weight, reduction)
    return torch.ops.aten.mse_loss(input, target, number_of(reduction))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:
    if weight is not None:
        return reduced(torch.ops.aten.l1_loss(input, target, 0) * weight, reduction)
    return torch.ops.aten.l1_loss(input, target, number_of(reduction))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    return torch.ops.aten.smooth_l1_loss(input, target, number_of(reduction), beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Optional[Tensor] = None,
) -> Tensor:
    if weight is not None:
        return reduced(torch.ops.aten.huber_loss(input, target, 0, delta) * weight, reduction)
    return torch.ops.aten.huber_loss(input, target, number_of(reduction), delta)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch.ops.aten.binary_cross_entropy(input, target, weight, number_of(reduction))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    pos_weight: Optional[Tensor] = None,
) -> Tensor:
    return torch.ops.aten.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight, number_of(reduction)
    )


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    if reduction == "batchmean":
        total = torch.ops.aten.kl_div(input, target, 2, log_target=log_target)
        return total if input.dim() == 0 else total / input.size(0)
    return torch.ops.aten.kl_div(input, target, number_of(reduction), log_target=log_target)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch.ops.aten.margin_ranking_loss(input1, input2, target, margin, number_of(reduction))


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch.ops.aten.hinge_embedding_loss(input, target, margin, number_of(reduction))


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch.ops.aten.cosine_embedding_loss(input1, input2, target, margin, number_of(reduction))


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch.ops.aten.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, number_of(reduction)
    )


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch.ops.aten.soft_margin_loss(input, target, number_of(reduction))


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Optional[bool] = None,
    eps: float = 1e-8,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    return torch.ops.aten.poisson_nll_loss(input, target, log_input, full, eps, number_of(reduction))
