"""Convolutions and transposed convolutions, in one to three dimensions."""

import math
from collections.abc import Sequence

import rushlight as torch
from rushlight import Tensor
from rushlight._errors.advice import advised
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.parameter import Parameter

from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple, _single

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d",
    "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    __constants__ = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels",
        "out_channels", "kernel_size",
    ]  # fmt: skip

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise advised(ValueError("in_channels must be divisible by groups"))
        if out_channels % groups != 0:
            raise advised(ValueError("out_channels must be divisible by groups"))
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {set(_PADDING_MODES)}, but got padding_mode={padding_mode!r}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._padding_for_pad()
        channels = (
            (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        )
        self.weight = Parameter(torch.empty((*channels, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _padding_for_pad(self):
        """The padding as an argument of `F.pad`, for the modes that convolution itself does not know."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        sides = []
        for d, k in zip(reversed(self.dilation), reversed(self.kernel_size)):
            total = d * (k - 1) if self.padding == "same" else 0
            sides += [total // 2, total - total // 2]
        return sides

    def reset_parameters(self):
        # With a = sqrt(5) the weights, too, are uniform within 1/sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _convolve(self, conv, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        return conv(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self):
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        ]
        n = len(self.kernel_size)
        if self.padding != (0,) * n:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * n:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * n:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _ForwardConv(_ConvNd):
    """What the three convolutions share; each adds how many dimensions it has, and its function."""

    _dimensions: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: "int | Sequence[int]",
        stride: "int | Sequence[int]" = 1,
        padding: "int | Sequence[int] | str" = 0,
        dilation: "int | Sequence[int]" = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ):
        tuple_of = _ntuple(self._dimensions)
        super().__init__(
            in_channels,
            out_channels,
            tuple_of(kernel_size),
            tuple_of(stride),
            padding if isinstance(padding, str) else tuple_of(padding),
            tuple_of(dilation),
            False,
            tuple_of(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input, weight, bias):
        return self._convolve(getattr(F, self._function), input, weight, bias)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_ForwardConv):
    """Cross-correlation of (N, C, L) with learned kernels.

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the result.
        kernel_size (int): elements of a filter.
        stride (int): step of the filter.
        padding (int or str): zeros on both sides, or 'same' or 'valid'.
        dilation (int): distance between elements of the filter.
        groups (int): how many groups the channels are split into.
        bias (bool): whether a bias is added.
        padding_mode (str): 'zeros', 'reflect', 'replicate' or 'circular'.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (batch, in, length) becomes (batch, out, l), l = (length + 2 * padding - dilation *
        (kernel - 1) - 1) // stride + 1

    Formula: y[o, i] = bias[o] + sum over c, k of weight[o, c, k] * x[c, stride * i + dilation * k - padding]

    Raises: ValueError where channels are no multiples of `groups`; RuntimeError where the input does not fit.

    Example:
        >>> torch.nn.Conv1d(3, 8, 5)(torch.ones(2, 3, 10)).shape
        torch.Size([2, 8, 6])
    """

    _dimensions = 1
    _function = "conv1d"


class Conv2d(_ForwardConv):
    """Cross-correlation of (N, C, H, W) with learned kernels.

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the result.
        kernel_size (int or (int, int)): height and width of a filter.
        stride (int or (int, int)): step of the filter.
        padding (int, (int, int) or str): zeros on each side, or 'same' or 'valid'.
        dilation (int or (int, int)): distance between elements of the filter.
        groups (int): how many groups the channels are split into.
        bias (bool): whether a bias is added.
        padding_mode (str): 'zeros', 'reflect', 'replicate' or 'circular'.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (batch, in, height, width) becomes (batch, out, h, w), h = (height + 2 * padding -
        dilation * (kernel - 1) - 1) // stride + 1

    Formula: y[o, i, j] = bias[o] + sum over c, k, l of weight[o, c, k, l] * x[c, stride * i + k,
        stride * j + l]

    Raises: ValueError where channels are no multiples of `groups`; RuntimeError where the input does not fit.

    Example:
        >>> torch.nn.Conv2d(3, 8, 3, padding=1)(torch.ones(1, 3, 5, 5)).shape
        torch.Size([1, 8, 5, 5])
    """

    _dimensions = 2
    _function = "conv2d"


class Conv3d(_ForwardConv):
    """Cross-correlation of (N, C, D, H, W) with learned kernels.

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the result.
        kernel_size (int or three ints): depth, height and width of a filter.
        stride (int or three ints): step of the filter.
        padding (int, three ints or str): zeros on each side, or 'same' or 'valid'.
        dilation (int or three ints): distance between elements of the filter.
        groups (int): how many groups the channels are split into.
        bias (bool): whether a bias is added.
        padding_mode (str): 'zeros', 'reflect', 'replicate' or 'circular'.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (batch, in, d, h, w) becomes (batch, out, d', h', w'), each (size + 2 * padding -
        dilation * (kernel - 1) - 1) // stride + 1

    Formula: y[o] = bias[o] + sum over c of weight[o, c] correlated with x[c]

    Raises: ValueError where channels are no multiples of `groups`; RuntimeError where the input does not fit.

    Example:
        >>> torch.nn.Conv3d(1, 2, 2)(torch.ones(1, 1, 3, 3, 3)).shape
        torch.Size([1, 2, 2, 2, 2])
    """

    _dimensions = 3
    _function = "conv3d"


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None
    ):
        """The output padding that makes the output as large as output_size asks."""
        if output_size is None:
            return _single(self.output_padding)
        n = num_spatial_dims
        lead = input.dim() - n
        if len(output_size) == lead + n:
            output_size = output_size[lead:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {lead + n} "
                "elements "
                f"(got {len(output_size)})"
            )
        dilation = dilation or (1,) * n
        smallest = [
            (input.size(lead + d) - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel_size[d] - 1) + 1
            for d in range(n)
        ]
        largest = [low + s - 1 for low, s in zip(smallest, stride)]
        if any(size < low or size > high for size, low, high in zip(output_size, smallest, largest)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} to "
                f"{largest} "
                f"(for an input of {input.size()[2:]})"
            )
        return [size - low for size, low in zip(output_size, smallest)]

    def _transpose(self, conv, input, output_size):
        output_padding = self._output_padding(
            input,
            output_size,
            self.stride,
            self.padding,
            self.kernel_size,
            len(self.kernel_size),
            self.dilation,
        )
        return conv(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
        )


class _ConvTransposeMixin(_ConvTransposeNd):
    """A former name, which packages still ask `isinstance` for."""


class _TransposedConv(_ConvTransposeNd):
    """The same for the transposed ones."""

    _dimensions: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: "int | Sequence[int]",
        stride: "int | Sequence[int]" = 1,
        padding: "int | Sequence[int]" = 0,
        output_padding: "int | Sequence[int]" = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: "int | Sequence[int]" = 1,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ):
        tuple_of = _ntuple(self._dimensions)
        super().__init__(
            in_channels,
            out_channels,
            tuple_of(kernel_size),
            tuple_of(stride),
            tuple_of(padding),
            tuple_of(dilation),
            True,
            tuple_of(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._transpose(getattr(F, self._function), input, output_size)


class ConvTranspose1d(_TransposedConv):
    """The gradient of `Conv1d` with respect to its input, as a layer.

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the result.
        kernel_size (int): length of a filter.
        stride (int): distance between the places that elements of the input are spread to.
        padding (int): places that are cut from each side of the result.
        output_padding (int): places that the result gets at one side.
        groups (int): how many groups the channels are split into.
        bias (bool): whether a bias is added.
        dilation (int): distance between elements of the filter.
        padding_mode (str): 'zeros'.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (batch, in, length) becomes (batch, out, l), each (size - 1) * stride - 2 * padding + dilation *
        (kernel - 1) + output_padding + 1

    Formula: the gradient of a convolution with respect to its input

    Raises: ValueError where channels are no multiples of `groups`; RuntimeError where `output_padding` is not
        below stride or dilation.

    Example:
        >>> torch.nn.ConvTranspose1d(1, 2, 2, stride=2)(torch.arange(4.0).view(1, 1, 4)).shape
        torch.Size([1, 2, 8])
    """

    _dimensions = 1
    _function = "conv_transpose1d"


class ConvTranspose2d(_TransposedConv):
    """The gradient of `Conv2d` with respect to its input, as a layer.

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the result.
        kernel_size (int or (int, int)): height and width of a filter.
        stride (int or (int, int)): distance between the places that elements of the input are spread to.
        padding (int or (int, int)): rows and columns that are cut from each side of the result.
        output_padding (int or (int, int)): rows and columns that the result gets at one side.
        groups (int): how many groups the channels are split into.
        bias (bool): whether a bias is added.
        dilation (int or (int, int)): distance between elements of the filter.
        padding_mode (str): 'zeros'.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (batch, in, height, width) becomes (batch, out, h, w), h = (height - 1) * stride - 2 *
        padding + dilation * (kernel - 1) + output_padding + 1

    Formula: the gradient of a convolution with respect to its input

    Raises: ValueError where channels are no multiples of `groups`; RuntimeError where
        `output_padding` is not below stride or dilation.

    Example:
        >>> torch.nn.ConvTranspose2d(4, 2, 2, stride=2)(torch.ones(1, 4, 3, 3)).shape
        torch.Size([1, 2, 6, 6])
    """

    _dimensions = 2
    _function = "conv_transpose2d"


class ConvTranspose3d(_TransposedConv):
    """The gradient of `Conv3d` with respect to its input, as a layer.

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the result.
        kernel_size (int or three ints): depth, height and width of a filter.
        stride (int or three ints): distance between the places that elements of the input are spread to.
        padding (int or three ints): places that are cut from each side of the result.
        output_padding (int or three ints): places that the result gets at one side.
        groups (int): how many groups the channels are split into.
        bias (bool): whether a bias is added.
        dilation (int or three ints): distance between elements of the filter.
        padding_mode (str): 'zeros'.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (batch, in, depth, height, width) becomes (batch, out, d, h, w), each (size - 1) * stride - 2 *
        padding + dilation * (kernel - 1) + output_padding + 1

    Formula: the gradient of a convolution with respect to its input

    Raises: ValueError where channels are no multiples of `groups`; RuntimeError where `output_padding` is not
        below stride or dilation.

    Example:
        >>> torch.nn.ConvTranspose3d(1, 2, 2, stride=2)(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 2, 8, 8, 8])
    """

    _dimensions = 3
    _function = "conv_transpose3d"


from ._lazy_conv import (  # noqa: E402  (made from the classes above)
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
)
