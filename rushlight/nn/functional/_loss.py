"""Losses composed of other operators."""

import math

import rushlight as torch
from rushlight._C import _nn
from rushlight._errors.advice import advised
from rushlight.nn._reduction import get_enum, legacy_get_string
from rushlight.nn.functional._arguments import need_floating, need_tensors, type_name


def _as_written_to(input, loss):
    """`loss` in the dtype of `input`, as if written there; refused where that would lose more than digits."""
    if loss.shape != input.shape:
        raise RuntimeError(
            f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(loss.shape)}"
        )
    if not torch.can_cast(loss.dtype, input.dtype):
        raise RuntimeError(
            f"result type {type_name(loss)} can't be cast to the desired output type {type_name(input)} "
            "(convert input to a floating-point dtype)"
        )
    return loss.to(input.dtype)


def _reduced(loss, reduction, size_average=None, reduce=None):
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"{reduction} is not a valid value for reduction")


def poisson_nll_loss(
    input,
    target,
    log_input=True,
    full=False,
    size_average=None,
    eps=1e-8,
    reduce=None,
    reduction="mean",
):
    """Negative log likelihood of counts; input is the rate or its logarithm."""
    need_tensors("poisson_nll_loss", input=input, target=target)
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss += stirling.masked_fill(target <= 1, 0)
    return _reduced(loss, reduction, size_average, reduce)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
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


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """input where target is 1, max(0, margin - input) where it is -1."""
    need_tensors("hinge_embedding_loss", input=input, target=target)
    zeros = torch.zeros_like(input)
    unlike = torch.where(target != 1, (margin - input).clamp_min(0), zeros)
    like = torch.where(target != -1, input, zeros)
    return _reduced(unlike + like, reduction, size_average, reduce)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target input))."""
    need_tensors("soft_margin_loss", input=input, target=target)
    loss = _as_written_to(input, torch.log1p(torch.exp(-input * target)))
    return _reduced(loss, reduction, size_average, reduce)


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Mean over classes of the binary cross entropy of logits."""
    loss = -(target * _nn.logsigmoid(input) + (1 - target) * _nn.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.sum(-1) / input.size(-1), reduction, size_average, reduce)


def _check_class_shapes(name, input, target):
    """input as (N, C) and whether it came so."""
    batched = input.dim() == 2
    if input.dim() > 2 or (batched and input.size(1) == 0) or input.numel() == 0:
        if not (batched and input.size(0) == 0 and input.size(1) != 0):
            raise RuntimeError(
                "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
                + str(list(input.shape))
            )
    return input if batched else input.reshape(1, -1), batched


def _check_reduction(reduction):
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def _check_classes(target):
    if target.dtype != torch.int64:
        raise RuntimeError(f"expected scalar type Long but found {type_name(target)}")


def multi_margin_loss(
    input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """Hinge loss between the target class and each other, to the power p, averaged over classes."""
    need_tensors("multi_margin_loss", input=input, target=target)
    need_floating("multi_margin_loss", input)
    if p != 1 and p != 2:
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    _check_reduction(reduction)
    x, batched = _check_class_shapes("multi_margin_loss", input, target)
    if target.dim() > 1 or target.numel() != x.size(0):
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples "
            f"(batch size). Expected target size {[x.size(0)]}, but got {list(target.shape)}. Input has "
            f"shape {list(input.shape)}."
        )
    if weight is not None and weight.numel() != x.size(1):
        raise RuntimeError(f"inconsistent weight size, expected {x.size(1)} but got {list(weight.shape)}")
    _check_classes(target)
    loss = torch._margin_loss(x, target.reshape(-1), p == 2, margin, weight)
    return _reduced(loss if batched or target.dim() else loss.squeeze(0), reduction, size_average, reduce)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Hinge loss between each target class (listed up to the first -1) and each other class."""
    need_tensors("multilabel_margin_loss", input=input, target=target)
    need_floating("multilabel_margin_loss", input)
    _check_reduction(reduction)
    x, batched = _check_class_shapes("multilabel_margin_loss", input, target)
    if target.shape != input.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    _check_classes(target)
    loss = torch._margin_loss(x, target.reshape(x.shape), False, 1.0, None)
    return _reduced(loss if batched else loss.squeeze(0), reduction, size_average, reduce)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    need_tensors("cosine_embedding_loss", input1=input1, input2=input2, target=target)
    if target.dim() not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    n = 2 if target.dim() == 1 else 1
    if input1.dim() != n or input2.dim() != n:
        raise RuntimeError(
            f"{n - 1}D target tensor expects {n}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} "
            f"and {list(input2.shape)}."
        )
    eps = 1e-12
    dot = (input1 * input2).sum(-1)
    norms = ((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)
    cos = dot / norms.sqrt()
    zeros = torch.zeros_like(cos)
    loss = torch.where(target == 1, 1 - cos, zeros) + torch.where(
        target == -1, (cos - margin).clamp_min(0), zeros
    )
    return _reduced(loss, reduction, size_average, reduce)


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target (input1 - input2) + margin)."""
    need_tensors("margin_ranking_loss", input1=input1, input2=input2, target=target)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    loss = (-target * (input1 - input2) + float(margin)).clamp_min(0)
    return _reduced(loss, reduction, size_average, reduce)


def _check_triplet(anchor, positive, negative):
    if anchor.dim() == positive.dim() == negative.dim():
        return
    raise advised(
        RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
            f"but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D "
            "inputs"
        )
    )


def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with the p-norm as distance."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    need_tensors("triplet_margin_loss", anchor=anchor, positive=positive, negative=negative)
    _check_triplet(anchor, positive, negative)
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)

    def distance(a, b):
        return torch.pairwise_distance(a, b, p, eps)

    return _triplet_loss(distance, anchor, positive, negative, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """`triplet_margin_loss` with any distance function."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    _check_triplet(anchor, positive, negative)
    distance = torch.pairwise_distance if distance_function is None else distance_function
    return _triplet_loss(distance, anchor, positive, negative, margin, swap, reduction)


def _triplet_loss(distance, anchor, positive, negative, margin, swap, reduction):
    to_positive = distance(anchor, positive)
    to_negative = distance(anchor, negative)
    if swap:
        to_negative = torch.minimum(to_negative, distance(positive, negative))
    return _reduced((margin + to_positive - to_negative).clamp_min(0), reduction)


def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
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
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False
):
    """Negative log likelihood of targets, summed over their alignments with log_probs of (T, N, C)."""
    kind = get_enum(reduction)
    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, kind, zero_infinity)
