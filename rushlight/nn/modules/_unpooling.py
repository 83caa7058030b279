"""The way back of maximum pooling."""

from collections.abc import Sequence

from rushlight import Tensor
from rushlight._command.names import show_from
from rushlight.nn import functional as F

from .module import Module
from .utils import _pair, _single, _triple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # the module typing is slow to load


class _MaxUnpoolNd(Module):
    _sides: Any = None

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size = self._sides(kernel_size)
        self.stride = self._sides(stride if stride is not None else kernel_size)
        self.padding = self._sides(padding)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """The way back of `MaxPool1d`: values return to their places, the rest is zero.

    Args:
        kernel_size (int): of the pooling.
        stride (int, optional): of the pooling; None is the window's size.
        padding (int): of the pooling.

    Shape: (batch, channels, l) and indices become (batch, channels, length), each (size - 1) * stride - 2 *
        padding + kernel

    Formula: y[indices[i]] = x[i], else 0

    Raises: RuntimeError where an index lies outside.

    Example:
        >>> y, indices = torch.nn.MaxPool1d(2, return_indices=True)(torch.arange(4.0).view(1, 1, 4))
        >>> torch.nn.MaxUnpool1d(2)(y, indices)
        tensor([[[0., 1., 0., 3.]]])
    """

    _sides = staticmethod(_single)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """The way back of `MaxPool2d`: values return to their places, the rest is zero.

    Args:
        kernel_size (int or (int, int)): of the pooling.
        stride (int or (int, int), optional): of the pooling; None is the window's size.
        padding (int or (int, int)): of the pooling.

    Shape: (batch, channels, h, w) and indices become (batch, channels, height, width), each (size - 1) *
        stride - 2 * padding + kernel

    Formula: y[indices[i]] = x[i], else 0

    Raises: RuntimeError where an index lies outside.

    Example:
        >>> y, indices = torch.nn.MaxPool2d(2, return_indices=True)(torch.ones(1, 1, 4, 4))
        >>> torch.nn.MaxUnpool2d(2)(y, indices).shape
        torch.Size([1, 1, 4, 4])
    """

    _sides = staticmethod(_pair)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """The way back of `MaxPool3d`: values return to their places, the rest is zero.

    Args:
        kernel_size (int or three ints): of the pooling.
        stride (int or three ints, optional): of the pooling; None is the window's size.
        padding (int or three ints): of the pooling.

    Shape: (batch, channels, d, h, w) and indices become (batch, channels, depth, height, width), each (size -
        1) * stride - 2 * padding + kernel

    Formula: y[indices[i]] = x[i], else 0

    Raises: RuntimeError where an index lies outside.

    Example:
        >>> y, indices = torch.nn.MaxPool3d(2, return_indices=True)(torch.ones(1, 1, 4, 4, 4))
        >>> torch.nn.MaxUnpool3d(2)(y, indices).shape
        torch.Size([1, 1, 4, 4, 4])
    """

    _sides = staticmethod(_triple)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


show_from("nn.modules.pooling", MaxUnpool1d, MaxUnpool2d, MaxUnpool3d)
