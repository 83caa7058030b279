"""Dropout of whole channels, and in the forms that keep mean and variance."""

import warnings

import rushlight as torch
from rushlight import Tensor
from rushlight._errors.advice import advised


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise advised(ValueError(f"dropout probability has to be between 0 and 1, but got {p}"))


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability p and scale the others by 1 / (1 - p).

    Args:
        input (Tensor): any tensor.
        p (float): the probability with which an element is set to zero.
        training (bool): whether anything happens.
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = x * b / (1 - p), b ~ Bernoulli(1 - p)

    Raises: ValueError where `p` is not from 0 to 1.

    Example:
        >>> torch.nn.functional.dropout(torch.ones(3), 0.5, training=False)
        tensor([1., 1., 1.])
    """
    _check_probability(p)
    return torch.dropout_(input, p, training) if inplace else torch.dropout(input, p, training)


def _feature_dropout(input, p, training, inplace):
    return (torch.feature_dropout_ if inplace else torch.feature_dropout)(input, p, training)


def _feature_dropout_unbatched(input, p, training, inplace, channels_at):
    """As above, where a missing batch dimension shows in the number of dimensions."""
    if input.dim() == channels_at:
        result = _feature_dropout(input.unsqueeze(0), p, training, inplace)
        return input if inplace else result.squeeze(0)
    return _feature_dropout(input, p, training, inplace)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, L) or (C, L)."""
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. "
            "Note that dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _feature_dropout_unbatched(input, p, training, inplace, 2)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
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


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
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


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout to SELU's saturation value that keeps mean and variance."""
    _check_probability(p)
    return torch.alpha_dropout_(input, p, training) if inplace else torch.alpha_dropout(input, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels."""
    _check_probability(p)
    return (torch.feature_alpha_dropout_ if inplace else torch.feature_alpha_dropout)(input, p, training)
