"""Pooling: maximum, average and power mean, over windows or to a given size, and the way back."""

from collections.abc import Sequence

from rushlight import Tensor
from rushlight.nn import functional as F

from ._unpooling import MaxUnpool1d, MaxUnpool2d, MaxUnpool3d
from .module import Module
from .utils import _pair, _single, _triple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # the module typing is slow to load

__all__ = [
    "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "AvgPool1d",
    "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d",
    "LPPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
]  # fmt: skip


class _MaxPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(
        self,
        kernel_size: "int | Sequence[int]",
        stride: "int | Sequence[int] | None" = None,
        padding: "int | Sequence[int]" = 0,
        dilation: "int | Sequence[int]" = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _pool(self, pool, input):
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of the last dimension.

    Args:
        kernel_size (int): length of a window.
        stride (int, optional): step of the window; None is its size.
        padding (int): places around that never win.
        dilation (int): distance between elements of a window.
        return_indices (bool): whether the places of the maxima are returned too.
        ceil_mode (bool): whether a window may reach beyond the end.

    Shape: (batch, channels, length) becomes (batch, channels, l), each (size + 2 * padding - dilation *
        (kernel - 1) - 1) // stride + 1

    Formula: y[i] = max over k of x[stride * i + dilation * k], in each dimension

    Raises: RuntimeError where `padding` is above half a window, or nothing is left.

    Example:
        >>> torch.nn.MaxPool1d(2)(torch.arange(4.0).view(1, 1, 4))
        tensor([[[1., 3.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.max_pool1d, input)


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size (int or (int, int)): height and width of a window.
        stride (int, (int, int) or None): step of the window; None is its size.
        padding (int or (int, int)): rows and columns around that never win.
        dilation (int or (int, int)): distance between elements of a window.
        return_indices (bool): whether the places of the maxima are returned too.
        ceil_mode (bool): whether a window may reach beyond the end.

    Shape: (batch, channels, height, width) becomes (batch, channels, h, w), h = (height + 2 *
        padding - dilation * (kernel - 1) - 1) // stride + 1

    Formula: y[i, j] = max over k, l of x[stride * i + k, stride * j + l]

    Raises: RuntimeError where `padding` is above half a window, or nothing is left.

    Example:
        >>> torch.nn.MaxPool2d(2)(torch.arange(16.0).view(1, 4, 4))
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.max_pool2d, input)


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of the last 3 dimensions.

    Args:
        kernel_size (int or three ints): depth, height and width of a window.
        stride (int or three ints, optional): step of the window; None is its size.
        padding (int or three ints): places around that never win.
        dilation (int or three ints): distance between elements of a window.
        return_indices (bool): whether the places of the maxima are returned too.
        ceil_mode (bool): whether a window may reach beyond the end.

    Shape: (batch, channels, depth, height, width) becomes (batch, channels, d, h, w), each (size + 2 *
        padding - dilation * (kernel - 1) - 1) // stride + 1

    Formula: y[i] = max over k of x[stride * i + dilation * k], in each dimension

    Raises: RuntimeError where `padding` is above half a window, or nothing is left.

    Example:
        >>> torch.nn.MaxPool3d(2)(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.max_pool3d, input)


class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of the last dimension.

    Args:
        kernel_size (int): length of a window.
        stride (int, optional): step of the window; None is its size.
        padding (int): zeros around.
        ceil_mode (bool): whether a window may reach beyond the end.
        count_include_pad (bool): whether zeros around count.

    Shape: (batch, channels, length) becomes (batch, channels, l), each (size + 2 * padding - kernel) //
        stride + 1

    Formula: y[i] = mean over k of x[stride * i + k], in each dimension

    Raises: RuntimeError where `padding` is above half a window, or nothing is left.

    Example:
        >>> torch.nn.AvgPool1d(2)(torch.arange(4.0).view(1, 1, 4))
        tensor([[[0.5000, 2.5000]]])
    """

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class _AvgPoolWithDivisor(_AvgPoolNd):
    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _pool(self, pool, input):
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolWithDivisor):
    """The mean of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size (int or (int, int)): height and width of a window.
        stride (int, (int, int) or None): step of the window; None is its size.
        padding (int or (int, int)): zeros around.
        ceil_mode (bool): whether a window may reach beyond the end.
        count_include_pad (bool): whether zeros around count.
        divisor_override (int or None): what sums are divided by; None is the number of elements.

    Shape: (batch, channels, height, width) becomes (batch, channels, h, w), h = (height + 2 *
        padding - kernel) // stride + 1

    Formula: y[i, j] = mean over k, l of x[stride * i + k, stride * j + l]

    Raises: RuntimeError where `padding` is above half a window, or nothing is left.

    Example:
        >>> torch.nn.AvgPool2d(2)(torch.arange(4.0).view(1, 2, 2))
        tensor([[[1.5000]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.avg_pool2d, input)


class AvgPool3d(_AvgPoolWithDivisor):
    """The mean of each window of the last three dimensions.

    Args:
        kernel_size (int or three ints): depth, height and width of a window.
        stride (int or three ints, optional): step of the window; None is its size.
        padding (int or three ints): zeros around.
        ceil_mode (bool): whether a window may reach beyond the end.
        count_include_pad (bool): whether zeros around count.
        divisor_override (int or None): what sums are divided by; None is the number of elements.

    Shape: (batch, channels, depth, height, width) becomes (batch, channels, d, h, w), each (size + 2 *
        padding - kernel) // stride + 1

    Formula: y[i] = mean over k of x[stride * i + k], in each dimension

    Raises: RuntimeError where `padding` is above half a window, or nothing is left.

    Example:
        >>> torch.nn.AvgPool3d(2)(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.avg_pool3d, input)

    def __setstate__(self, state):
        super().__setstate__(state)
        for name, default in (("padding", 0), ("ceil_mode", False), ("count_include_pad", True)):
            self.__dict__.setdefault(name, default)


class _FractionalMaxPoolNd(Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _sides: Any = None

    def __init__(
        self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
    ):
        super().__init__()
        name = type(self).__name__
        self.kernel_size = self._sides(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = self._sides(output_size) if output_size is not None else None
        self.output_ratio = self._sides(output_ratio) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _pool(self, pool, input):
        return pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima over windows that are spaced at random to give the size asked for (Graham 2015).

    Args:
        kernel_size (int or (int, int)): height and width of a window.
        output_size (int or (int, int), optional): height and width of the result.
        output_ratio (float or two floats, optional): the result's size over the input's.
        return_indices (bool): whether the places of the maxima are returned too.

    Shape: (batch, channels, height, width) becomes (batch, channels, *output_size).

    Formula: y[i] = max of a window that begins near i * size / out

    Raises: ValueError where neither or both of size and ratio are given.

    Example:
        >>> torch.nn.FractionalMaxPool2d(2, output_size=2)(torch.ones(1, 1, 5, 5)).shape
        torch.Size([1, 1, 2, 2])
    """

    _sides = staticmethod(_pair)

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.fractional_max_pool2d, input)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima over windows that are spaced at random to give the size asked for (Graham 2015).

    Args:
        kernel_size (int or three ints): depth, height and width of a window.
        output_size (int or three ints, optional): depth, height and width of the result.
        output_ratio (float or three floats, optional): the result's size over the input's.
        return_indices (bool): whether the places of the maxima are returned too.

    Shape: (batch, channels, depth, height, width) becomes (batch, channels, *output_size).

    Formula: y[i] = max of a window that begins near i * size / out

    Raises: ValueError where neither or both of size and ratio are given.

    Example:
        >>> torch.nn.FractionalMaxPool3d(2, output_size=2)(torch.ones(1, 1, 5, 5, 5)).shape
        torch.Size([1, 1, 2, 2, 2])
    """

    _sides = staticmethod(_triple)

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.fractional_max_pool3d, input)


class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self):
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The p-norm of each window of the last dimension.

    Args:
        norm_type (float): p; 1 gives sums.
        kernel_size (int): length of a window.
        stride (int, optional): step of the window; None is its size.
        ceil_mode (bool): whether a window may reach beyond the end.

    Shape: (batch, channels, length) becomes (batch, channels, l), each (size - kernel) // stride + 1

    Formula: y[i] = (sum over k of x[stride * i + k]**p)**(1 / p)

    Example:
        >>> torch.nn.LPPool1d(1, 2)(torch.arange(4.0).view(1, 1, 4))
        tensor([[[1., 5.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    """The p-norm of each window of the last two dimensions.

    Args:
        norm_type (float): p; 1 gives sums.
        kernel_size (int or (int, int)): height and width of a window.
        stride (int or (int, int), optional): step of the window; None is its size.
        ceil_mode (bool): whether a window may reach beyond the end.

    Shape: (batch, channels, height, width) becomes (batch, channels, h, w), each (size - kernel) // stride +
        1

    Formula: y[i] = (sum over k of x[stride * i + k]**p)**(1 / p)

    Example:
        >>> torch.nn.LPPool2d(1, 2)(torch.ones(1, 1, 4, 4)).shape
        torch.Size([1, 1, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    """The p-norm of each window of the last three dimensions.

    Args:
        norm_type (float): p; 1 gives sums.
        kernel_size (int or three ints): depth, height and width of a window.
        stride (int or three ints, optional): step of the window; None is its size.
        ceil_mode (bool): whether a window may reach beyond the end.

    Shape: (batch, channels, depth, height, width) becomes (batch, channels, d, h, w), each (size - kernel) //
        stride + 1

    Formula: y[i] = (sum over k of x[stride * i + k]**p)**(1 / p)

    Example:
        >>> torch.nn.LPPool3d(1, 2)(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveMaxPoolNd(Module):
    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maxima of windows that cover the last dimension, as many as asked for.

    Args:
        output_size (int): length of the result.
        return_indices (bool): whether the places of the maxima are returned too.

    Shape: (batch, channels, length) becomes (batch, channels, *output_size).

    Formula: y[i] = max of x from i * size // out to ceil((i + 1) * size / out), in each dimension

    Example:
        >>> torch.nn.AdaptiveMaxPool1d(2)(torch.arange(4.0).view(1, 1, 4))
        tensor([[[1., 3.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maxima of windows that cover the last two dimensions, as many as asked for.

    Args:
        output_size (int, None or a pair of them): height and width of the result; None keeps the input's.
        return_indices (bool): whether the places of the maxima are returned too.

    Shape: (batch, channels, height, width) becomes (batch, channels, *output_size).

    Formula: y[i] = max of x from i * size // out to ceil((i + 1) * size / out), in each dimension

    Example:
        >>> torch.nn.AdaptiveMaxPool2d(2)(torch.ones(1, 1, 4, 4)).shape
        torch.Size([1, 1, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maxima of windows that cover the last three dimensions, as many as asked for.

    Args:
        output_size (int, None or three of them): depth, height and width of the result; None keeps the
            input's.
        return_indices (bool): whether the places of the maxima are returned too.

    Shape: (batch, channels, depth, height, width) becomes (batch, channels, *output_size).

    Formula: y[i] = max of x from i * size // out to ceil((i + 1) * size / out), in each dimension

    Example:
        >>> torch.nn.AdaptiveMaxPool3d(2)(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(Module):
    __constants__ = ["output_size"]

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The means of windows that cover the last dimension, as many as asked for.

    Args:
        output_size (int): length of the result.

    Shape: (batch, channels, length) becomes (batch, channels, *output_size).

    Formula: y[i] = mean of x from i * size // out to ceil((i + 1) * size / out), in each dimension

    Example:
        >>> torch.nn.AdaptiveAvgPool1d(2)(torch.arange(4.0).view(1, 1, 4))
        tensor([[[0.5000, 2.5000]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The means of output_size windows that cover the last two dimensions.

    Args:
        output_size (int, None or a pair of them): height and width of the result; None keeps the input's.

    Shape: (batch, channels, height, width) becomes (batch, channels, *output_size).

    Formula: y[i, j] = mean of the rows from i * height // h to ceil((i + 1) * height / h), columns likewise

    Raises: RuntimeError where the input has neither three nor four dimensions.

    Example:
        >>> torch.nn.AdaptiveAvgPool2d(1)(torch.arange(4.0).view(1, 2, 2))
        tensor([[[1.5000]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The means of windows that cover the last three dimensions, as many as asked for.

    Args:
        output_size (int, None or three of them): depth, height and width of the result; None keeps the
            input's.

    Shape: (batch, channels, depth, height, width) becomes (batch, channels, *output_size).

    Formula: y[i] = mean of x from i * size // out to ceil((i + 1) * size / out), in each dimension

    Example:
        >>> torch.nn.AdaptiveAvgPool3d(2)(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)
