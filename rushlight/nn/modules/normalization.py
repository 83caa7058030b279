"""Normalization over features, groups of channels, and neighbouring channels."""

from collections.abc import Sequence

import rushlight as torch
from rushlight import Tensor
from rushlight._errors.advice import advised
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.parameter import Parameter

from .module import Module

__all__ = ["LocalResponseNorm", "CrossMapLRN2d", "LayerNorm", "GroupNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """Elements over a power of the mean square of neighbouring channels (Krizhevsky and others 2012).

    Args:
        size (int): how many channels.
        alpha (float): factor of the sum of squares.
        beta (float): the power.
        k (float): added to it.

    Shape: (batch, channels, ..), kept.

    Formula: y = x / (k + alpha / size * sum of squares of `size` channels around)**beta

    Raises: ValueError where the input has fewer than three dimensions.

    Example:
        >>> torch.nn.LocalResponseNorm(2)(torch.ones(1, 2, 1)).flatten()
        tensor([1.0000, 0.9999])
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """The old form of `LocalResponseNorm`.

    Args:
        size (int): how many channels.
        alpha (float): factor of the sum of squares.
        beta (float): the power.
        k (float): added to it.

    Shape: (batch, channels, height, width), kept.

    Formula: that of `LocalResponseNorm`

    Raises: RuntimeError where the input has not four dimensions.

    Example:
        >>> torch.nn.CrossMapLRN2d(2)(torch.ones(1, 2, 1, 1)).flatten()
        tensor([0.9999, 1.0000])
    """

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        before = (self.size - 1) // 2 + 1
        squares = F.pad(input.pow(2), (0, 0, 0, 0, before - 1, self.size - before))
        sums = squares.unfold(1, self.size, 1).sum(-1)
        return input * (self.k + self.alpha / self.size * sums).pow(-self.beta)

    extra_repr = LocalResponseNorm.extra_repr


def _shape(normalized_shape):
    from numbers import Integral

    return (normalized_shape,) if isinstance(normalized_shape, Integral) else tuple(normalized_shape)


class LayerNorm(Module):
    """Zero mean and unit variance over the last dimensions, then scale and shift.

    Args:
        normalized_shape (int or sequence of int): the last sizes of the input, which are normalized together.
        eps (float): is added to the variance.
        elementwise_affine (bool): whether the result is scaled by a weight and shifted by a bias.
        bias (bool): whether there is a bias.
        device, dtype: where and in which dtype the parameters are made.

    Shape: that of the input.

    Formula: y = (x - mean) / sqrt(variance + eps) * weight + bias

    Raises: RuntimeError where the input does not end with `normalized_shape`.

    Example:
        >>> torch.nn.LayerNorm(2)(torch.tensor([[1.0, 3.0]])).tolist()[0][0] < -0.99
        True
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: "int | Sequence[int]",
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, present in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            value = (
                Parameter(torch.empty(self.normalized_shape, device=device, dtype=dtype)) if present else None
            )
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self):
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Zero mean and unit variance over each group of channels, then scale and shift per channel.

    Args:
        num_groups (int): into how many groups the channels are split.
        num_channels (int): channels of the input, a multiple of `num_groups`.
        eps (float): is added to the variance.
        affine (bool): whether each channel is scaled and shifted.
        device, dtype: where and in which dtype the parameters are made.
        bias (bool): whether there is a bias.

    Shape: (batch, channels, ..), kept.

    Formula: y = (x - mean) / sqrt(variance + eps) * weight + bias, over the channels of a group and
        all places

    Raises: ValueError where `num_channels` is no multiple of `num_groups`.

    Example:
        >>> torch.nn.GroupNorm(2, 4)(torch.ones(1, 4, 3)).abs().max().item() < 1e-3
        True
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        if num_channels % num_groups != 0:
            raise advised(
                ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, present in (("weight", affine), ("bias", affine and bias)):
            value = Parameter(torch.empty(num_channels, device=device, dtype=dtype)) if present else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self):
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Unit root mean square over the last dimensions, then scale.

    Args:
        normalized_shape (int or sequence of int): the last sizes of the input, which are normalized together.
        eps (float or None): is added to the mean square; None is the dtype's epsilon.
        elementwise_affine (bool): whether the result is scaled by a weight.
        device, dtype: where and in which dtype the weight is made.

    Shape: that of the input.

    Formula: y = x / sqrt(mean(x**2) + eps) * weight

    Raises: RuntimeError where the input does not end with `normalized_shape`.

    Example:
        >>> torch.nn.RMSNorm(2)(torch.tensor([[3.0, 3.0]])).shape
        torch.Size([1, 2])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: "int | Sequence[int]",
        eps: "float | None" = None,
        elementwise_affine: bool = True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = (
            torch.empty(self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None
        )
        self.register_parameter("weight", None if weight is None else Parameter(weight))
        self.reset_parameters()

    def reset_parameters(self):
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
