"""Dropout of whole channels, and in the forms that keep mean and variance."""

import math
import warnings

import rushlight as torch


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    """While training, zeros elements with probability `p` and scales the others by 1 / (1 - p)."""
    _check_probability(p)
    return (torch.dropout_ if inplace else torch.dropout)(input, p, training)


def _channel_noise(input, p):
    """One number for each channel of each sample: 1 with probability 1 - p, else 0."""
    shape = (*input.shape[:2], *(1 for _ in input.shape[2:]))
    return input.new_empty(shape).bernoulli_(1 - p)


def _feature_dropout(input, p, training, inplace):
    _check_probability(p)
    if not training or p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    noise = _channel_noise(input, p).div_(1 - p)
    return input.mul_(noise) if inplace else input * noise


def _feature_dropout_unbatched(input, p, training, inplace, channels_at):
    """As above, where a missing batch dimension shows in the number of dimensions."""
    if input.dim() == channels_at:
        out = _feature_dropout(input.unsqueeze(0), p, training, inplace)
        return input if inplace else out.squeeze(0)
    return _feature_dropout(input, p, training, inplace)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of (N, C, L) or (C, L)."""
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. "
            "Note that dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _feature_dropout_unbatched(input, p, training, inplace, 2)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of (N, C, H, W)."""
    _check_probability(p)
    if input.dim() not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result "
            "in an error "
            "in a future release. To retain the behavior and silence this warning, please use dropout "
            "instead. Note that "
            "dropout2d exists to provide channel-wise dropout on inputs with 2 spatial dimensions, a channel "
            "dimension, "
            "and an optional batch dimension (i.e. 3D or 4D inputs).",
            stacklevel=2,
        )
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior "
            "is desired - "
            "input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change "
            "in a future "
            "release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To "
            "maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _feature_dropout(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    _check_probability(p)
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result "
            "in an error "
            "in a future release. To retain the behavior and silence this warning, please use dropout "
            "instead. Note that "
            "dropout3d exists to provide channel-wise dropout on inputs with 3 spatial dimensions, a channel "
            "dimension, "
            "and an optional batch dimension (i.e. 4D or 5D inputs).",
            stacklevel=2,
        )
    return _feature_dropout_unbatched(input, p, training, inplace, 4)


_SELU_SATURATION = 1.7580993408473766  # scale * alpha of SELU


def _alpha_dropout(input, keep, p, inplace):
    """Set dropped elements to SELU's saturation value, then restore mean 0 and variance 1."""
    a = 1 / math.sqrt((_SELU_SATURATION**2 * p + 1) * (1 - p))
    shift = (keep - 1).mul_(_SELU_SATURATION * a).add_(_SELU_SATURATION * a * p)
    scale = keep.mul_(a)
    return input.mul_(scale).add_(shift) if inplace else input * scale + shift


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout for networks of SELU."""
    _check_probability(p)
    if not training or p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    import rushlight as torch

    return _alpha_dropout(input, torch.empty_like(input).bernoulli_(1 - p), p, inplace)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """`alpha_dropout` of whole channels."""
    _check_probability(p)
    if not training or p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    return _alpha_dropout(input, _channel_noise(input, p), p, inplace)
