"""Resizing of images by interpolation."""

from rushlight import Tensor
from rushlight.nn import functional as F

from .module import Module

__all__ = ["Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d"]


class Upsample(Module):
    """Interpolation to a size, or by a factor.

    Args:
        size (int or tuple, optional): of the result.
        scale_factor (float or tuple, optional): the result's size over the input's.
        mode (str): 'nearest', 'nearest-exact', 'linear', 'bilinear', 'bicubic' or 'trilinear'.
        align_corners (bool, optional): whether the corners' centres stay where they are.
        recompute_scale_factor (bool, optional): whether the factor is computed again from the sizes.

    Shape: (batch, channels, ..) becomes (batch, channels, *size).

    Formula: y[i] = x at (i + 0.5) * size / out - 0.5, interpolated by `mode`

    Raises: ValueError where neither or both of size and factor are given.

    Example:
        >>> torch.nn.Upsample(scale_factor=2)(torch.arange(2.0).view(1, 1, 2))
        tensor([[[0., 0., 1., 1.]]])
    """

    __constants__ = ["size", "scale_factor", "mode", "align_corners", "name", "recompute_scale_factor"]

    def __init__(
        self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None
    ):
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor: float | tuple[float, ...] | None
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def __setstate__(self, state):
        state.setdefault("recompute_scale_factor", True)
        super().__setstate__(state)

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self):
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images with mode='nearest'.

    Args:
        size (int or (int, int), optional): height and width of the result.
        scale_factor (float or (float, float), optional): the result's size over the input's.

    Shape: (batch, channels, height, width) becomes (batch, channels, *size).

    Formula: y[i, j] = x[i * height // h, j * width // w]

    Example:
        >>> torch.nn.UpsamplingNearest2d(scale_factor=2)(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 4, 4])
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images with mode='bilinear' and align_corners=True.

    Args:
        size (int or (int, int), optional): height and width of the result.
        scale_factor (float or (float, float), optional): the result's size over the input's.

    Shape: (batch, channels, height, width) becomes (batch, channels, *size).

    Formula: y[i, j] = x at i * (height - 1) / (h - 1), j * (width - 1) / (w - 1), interpolated

    Example:
        >>> torch.nn.UpsamplingBilinear2d(scale_factor=2)(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 4, 4])
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
