"""Activations, losses and layers in terms of the core ATen operators."""

import math

import rushlight as torch
from rushlight._functorch.functionalization import _emit as whole

from ._registry import register_decomposition

aten = torch.ops.aten  # type: ignore[attr-defined]

# --- activations ------------------------------------------------------------------------------------


@register_decomposition(aten.silu)
def silu(x):
    return x * x.sigmoid()


@register_decomposition(aten.mish)
def mish(x):
    return x * softplus(x).tanh()


@register_decomposition(aten.softplus)
def softplus(x, beta=1, threshold=20):
    scaled = x if beta == 1 else x * beta
    soft = scaled.exp().log1p()
    return torch.where(scaled > threshold, x, soft if beta == 1 else soft / beta)


@register_decomposition(aten.log_sigmoid)
def log_sigmoid(x):
    return torch.minimum(torch.zeros_like(x), x) - (-x.abs()).exp().log1p()


@register_decomposition(aten.hardsigmoid)
def hardsigmoid(x):
    return (x + 3).clamp(0, 6) / 6


@register_decomposition(aten.hardswish)
def hardswish(x):
    return x * (x + 3).clamp(0, 6) / 6


@register_decomposition(aten.hardshrink.default)
def hardshrink(x, lambd=0.5):
    return torch.where(x.abs() <= lambd, torch.zeros_like(x), x)


@register_decomposition(aten.softshrink.default)
def softshrink(x, lambd=0.5):
    return torch.where(x.abs() > lambd, x - x.sign() * lambd, x * 0)


@register_decomposition(aten.threshold)
def threshold(x, threshold, value):
    return torch.where(x <= threshold, value, x)


@register_decomposition(aten._prelu_kernel)
def prelu(x, weight):
    return torch.where(x > 0, x, weight * x)


# --- losses -----------------------------------------------------------------------------------------


def _reduced(loss, reduction):
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


@register_decomposition(aten.mse_loss)
def mse_loss(x, target, reduction=1):
    return _reduced((x - target) ** 2, reduction)


@register_decomposition(aten.smooth_l1_loss)
def smooth_l1_loss(x, target, reduction=1, beta=1.0):
    apart = (x - target).abs()
    if beta == 0:
        return _reduced(apart, reduction)
    return _reduced(torch.where(apart < beta, 0.5 * apart * apart / beta, apart - 0.5 * beta), reduction)


@register_decomposition(aten.huber_loss)
def huber_loss(x, target, reduction=1, delta=1.0):
    apart = (x - target).abs()
    return _reduced(torch.where(apart <= delta, 0.5 * apart**2, delta * (apart - 0.5 * delta)), reduction)


@register_decomposition(aten.binary_cross_entropy)
def binary_cross_entropy(x, target, weight=None, reduction=1):
    loss = (target - 1) * (-x).log1p().clamp(min=-100) - target * x.log().clamp(min=-100)
    return _reduced(loss if weight is None else loss * weight, reduction)


@register_decomposition(aten.binary_cross_entropy_with_logits)
def binary_cross_entropy_with_logits(x, target, weight=None, pos_weight=None, reduction=1):
    factor = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    loss = (1 - target) * x - factor * log_sigmoid(x)
    return _reduced(loss if weight is None else loss * weight, reduction)


def _likelihood(x, target, weight, reduction, ignore_index, classes):
    """(loss, sum of the weights) with the classes along one dimension."""
    place = torch.where(target != ignore_index, target, 0)
    scores = -x.gather(classes, place.unsqueeze(classes)).squeeze(classes)
    if weight is not None:
        shape = [1] * x.dim()
        shape[classes] = weight.shape[0]
        spread = weight.view(shape).expand(x.shape)
        weights = spread.gather(classes, place.unsqueeze(classes)).squeeze(classes)
        scores = scores * weights
    scores = torch.where(target != ignore_index, scores, 0.0)
    if reduction == 0:
        return scores, x.new_full((), 0.0)
    if weight is None:
        total = (target != ignore_index).sum().to(x.dtype)
    else:
        total = torch.where(target != ignore_index, weights, 0.0).sum()
    return (scores.sum() / total if reduction == 1 else scores.sum()), total


@register_decomposition(aten.nll_loss_forward)
def nll_loss_forward(x, target, weight, reduction, ignore_index):
    return _likelihood(x, target, weight, reduction, ignore_index, 1 if x.dim() > 1 else 0)


@register_decomposition(aten.nll_loss2d_forward)
def nll_loss2d_forward(x, target, weight, reduction, ignore_index):
    return _likelihood(x, target, weight, reduction, ignore_index, 1)


# --- layers -----------------------------------------------------------------------------------------


@register_decomposition(aten.dropout)
def dropout(x, p, train):
    if not train or p == 0 or not x.numel():
        return aten.clone.default(x) if train else x
    return whole(aten.native_dropout.default, x, p, True)[0]


@register_decomposition(aten._dropout_noise)
def dropout_noise(x, size, keep, scaled):
    kept = (torch.rand(size, dtype=torch.float32, device=x.device) < keep).to(x.dtype)
    return kept / keep if scaled and keep else kept


@register_decomposition(aten.convolution)
def convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Lists of one number for all dimensions are written out."""
    lists = stride, padding, dilation, output_padding
    full = [list(v) * (x.dim() - 2) if len(v) == 1 else list(v) for v in lists]
    if weight.dim() != x.dim() or full == [list(v) for v in lists]:
        return NotImplemented
    stride, padding, dilation, output_padding = full
    return aten.convolution.default(
        x, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


@register_decomposition(aten.native_batch_norm)
def native_batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    if not training:
        return whole(
            aten._native_batch_norm_legit_no_training.default,
            x, weight, bias, running_mean, running_var, momentum, eps,
        )  # fmt: skip
    return whole(aten._native_batch_norm_legit.no_stats, x, weight, bias, True, momentum, eps)


@register_decomposition(
    [aten._lstm_layer.default, aten._thnn_fused_gru_cell.default, aten._thnn_fused_lstm_cell.default]
)
def recurrence(x, *args):
    """A layer, of eight arguments or more, or a cell, with three or four gates for each hidden number."""
    from rushlight.export._pt2_decompositions import _gru_cell, _lstm_cell, _lstm_layer

    if len(args) > 4:
        return _lstm_layer(x, *args)
    return (_lstm_cell if x.shape[1] == 4 * args[1].shape[1] else _gru_cell)(x, *args)


@register_decomposition(aten._scaled_dot_product_flash_attention_for_cpu)
def attention(query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    if dropout_p:
        return NotImplemented
    scores = (query * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)) @ key.transpose(-2, -1)
    if is_causal:
        rows, columns = torch.arange(scores.shape[-2]), torch.arange(scores.shape[-1])
        scores = torch.where(columns > rows.unsqueeze(-1), -math.inf, scores)
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = torch.where(attn_mask, scores, -math.inf)
        else:
            scores = scores + attn_mask
    return scores.softmax(-1) @ value, torch.logsumexp(scores, -1)


@register_decomposition(aten.one_hot)
def one_hot(x, num_classes=-1):
    if num_classes < 0:
        return NotImplemented
    return (x.unsqueeze(-1) == torch.arange(num_classes, device=x.device)).to(torch.int64)


def _scaled(packet, x, output_size, scales, *align):
    """The form that takes a size or factors; it stays where neither says it all."""
    if all(s is None for s in scales):
        return whole(packet.vec, x, output_size, *align, None)
    sizes = [None if s is None else int(n * s) for n, s in zip(x.shape[2:], scales)]
    return whole(packet.vec, x, None, *align, list(scales)) if sizes == list(output_size) else NotImplemented


@register_decomposition(aten.upsample_bilinear2d.default)
def upsample_bilinear2d(x, output_size, align_corners, scales_h=None, scales_w=None):
    return _scaled(aten.upsample_bilinear2d, x, output_size, (scales_h, scales_w), align_corners)


@register_decomposition(aten.upsample_nearest2d.default)
def upsample_nearest2d(x, output_size, scales_h=None, scales_w=None):
    return _scaled(aten.upsample_nearest2d, x, output_size, (scales_h, scales_w))
