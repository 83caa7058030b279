"""Convolutions that take the number of their input's channels from the first input."""

import rushlight as torch
from rushlight._command.names import show_from
from rushlight._errors.advice import advised
from rushlight.nn.parameter import UninitializedParameter

from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .lazy import LazyModuleMixin


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

show_from(
    "nn.modules.conv",
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
    _LazyConvXdMixin,
)
