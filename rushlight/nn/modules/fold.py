"""Sliding blocks of an image as columns, and back."""

from rushlight import Tensor
from rushlight.nn import functional as F

from .module import Module

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """Columns of blocks summed up to an image: the transpose of `Unfold`.

    Args:
        output_size (int or (int, int)): height and width of the image.
        kernel_size (int or (int, int)): height and width of a block.
        dilation (int or (int, int)): distance between elements of a block.
        padding (int or (int, int)): places around that are cut.
        stride (int or (int, int)): step of the block.

    Shape: (batch, channels * kernel, blocks) becomes (batch, channels, height, width).

    Formula: y[i, j] = sum over the blocks and elements that lie at i, j

    Raises: RuntimeError where the number of blocks does not fit.

    Example:
        >>> torch.nn.Fold((3, 3), 2)(torch.ones(1, 4, 4))
        tensor([[[[1., 2., 1.],
                  [2., 4., 2.],
                  [1., 2., 1.]]]])
    """

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self):
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """Every block of an image as a column.

    Args:
        kernel_size (int or (int, int)): height and width of a block.
        dilation (int or (int, int)): distance between elements of a block.
        padding (int or (int, int)): zeros around.
        stride (int or (int, int)): step of the block.

    Shape: (batch, channels, height, width) becomes (batch, channels * kernel, blocks).

    Formula: y[:, k, b] = x at element k of block b

    Raises: RuntimeError where a block does not fit.

    Example:
        >>> torch.nn.Unfold(2)(torch.ones(1, 3, 4, 4)).shape
        torch.Size([1, 12, 9])
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )
