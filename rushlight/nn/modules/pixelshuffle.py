"""Moving channels into space and back."""

from rushlight import Tensor
from rushlight.nn import functional as F

from .module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Channels become places (Shi and others 2016).

    Args:
        upscale_factor (int): r.

    Shape: (.., C * r**2, H, W) becomes (.., C, H * r, W * r).

    Formula: y[c, h * r + i, w * r + j] = x[c * r**2 + i * r + j, h, w]

    Raises: RuntimeError where the channels are no multiple of r**2.

    Example:
        >>> torch.nn.PixelShuffle(2)(torch.arange(4.0).view(1, 4, 1, 1))
        tensor([[[[0., 1.],
                  [2., 3.]]]])
    """

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self):
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Places become channels: the way back of `PixelShuffle`.

    Args:
        downscale_factor (int): r.

    Shape: (.., C, H * r, W * r) becomes (.., C * r**2, H, W).

    Formula: y[c * r**2 + i * r + j, h, w] = x[c, h * r + i, w * r + j]

    Raises: RuntimeError where height or width is no multiple of r.

    Example:
        >>> torch.nn.PixelUnshuffle(2)(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 4, 1, 1])
    """

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self):
        return f"downscale_factor={self.downscale_factor}"
