"""Convolutions and transposed convolutions, in one to three dimensions."""

from collections.abc import Sequence

import rushlight as torch
from rushlight import Tensor
from rushlight._errors.advice import advised
from rushlight.nn import functional as F
from rushlight.nn.parameter import UninitializedParameter

from ._conv_base import _ConvNd
from .lazy import LazyModuleMixin
from .utils import _ntuple, _single

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d",
    "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip


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


class _LazyConvXdMixin(LazyModuleMixin):
    """Takes in_channels from the first input; the rest of the arguments is as in the class it becomes."""

    def _make_lazy(self, out_channels, bias, device, dtype):
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        if not self.has_uninitialized_params():
            return
        with torch.no_grad():
            self.in_channels = self._get_in_channels(input)
            if self.in_channels % self.groups != 0:
                raise advised(ValueError("in_channels must be divisible by groups"))
            if self.transposed:
                channels = (self.in_channels, self.out_channels // self.groups)
            else:
                channels = (self.out_channels, self.in_channels // self.groups)
            self.weight.materialize((*channels, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()

    def _get_in_channels(self, input):
        n = self._get_num_spatial_dims()
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, "
                f"but got input of size: {input.shape}"
            )
        return input.shape[-n - 1]

    def _get_num_spatial_dims(self):
        return len(self.kernel_size)


def _lazy_conv(base):
    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super(cls, self).__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype
        )
        self._make_lazy(out_channels, bias, device, dtype)

    cls = _lazy_class(base, __init__)
    return cls


def _lazy_conv_transpose(base):
    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super(cls, self).__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
            device,
            dtype,
        )
        self._make_lazy(out_channels, bias, device, dtype)

    cls = _lazy_class(base, __init__)
    return cls


_DOC = """A `{name}` that takes `in_channels` from its first input, and is one from then on.

    Args:
        {arguments}: see `{name}`.
        device, dtype: where and in which dtype the parameters are made.

    Shape: that of `{name}`.

    Formula: that of `{name}`

    Raises: RuntimeError where the input has another rank.

    Example:
        >>> layer = torch.nn.Lazy{name}(3, 1)
        >>> layer(torch.ones{size}).shape
        torch.Size([{shape}])
        >>> layer.in_channels
        2
    """


def _lazy_class(base, init):
    size = (1, 2) + (4,) * int(base.__name__[-2])
    code = init.__code__
    named = [n for n in code.co_varnames[1 : code.co_argcount] if n not in ("device", "dtype")]
    shape = ", ".join(map(str, (1, 3, *size[2:])))
    body = {
        "__init__": init,
        "cls_to_become": base,
        "__module__": __name__,
        "__doc__": _DOC.format(name=base.__name__, arguments=", ".join(named), size=size, shape=shape),
    }
    return type("Lazy" + base.__name__, (_LazyConvXdMixin, base), body)


LazyConv1d, LazyConv2d, LazyConv3d = _lazy_conv(Conv1d), _lazy_conv(Conv2d), _lazy_conv(Conv3d)
LazyConvTranspose1d = _lazy_conv_transpose(ConvTranspose1d)
LazyConvTranspose2d = _lazy_conv_transpose(ConvTranspose2d)
LazyConvTranspose3d = _lazy_conv_transpose(ConvTranspose3d)
