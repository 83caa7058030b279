"""Convolutions of reference models."""

from rushlight import nn
from rushlight.nn import functional as F

from .utils import ReferenceQuantizedModule

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_NAMES = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups")
_TRANSPOSED = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "output_padding", "groups")


class _ConvNd(nn.modules.conv._ConvNd, ReferenceQuantizedModule):
    """What they share."""

    _IS_REFERENCE = True

    def __init__(self, *args, weight_qparams=None, device=None, dtype=None, **kwargs):
        super().__init__(*args, device=device, dtype=dtype, **kwargs)
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self):
        return f"Quantized{type(self).__name__}(Reference)"

    def forward(self, x):
        return self._conv_forward(x, self.get_weight(), self.bias)

    @classmethod
    def _arguments(cls, conv):
        return (*(getattr(conv, name) for name in _NAMES), conv.bias is not None, conv.padding_mode)

    @classmethod
    def from_float(cls, float_conv, weight_qparams):
        made = cls(
            *cls._arguments(float_conv),
            device=float_conv.weight.device,
            dtype=float_conv.weight.dtype,
            weight_qparams=weight_qparams,
        )
        made.weight = nn.Parameter(float_conv.weight.detach())
        if float_conv.bias is not None:
            made.bias = nn.Parameter(float_conv.bias.detach())
        return made


class _ConvTransposeNd(_ConvNd):
    """What transposed ones share."""

    @classmethod
    def _arguments(cls, conv):
        return (
            *(getattr(conv, name) for name in _TRANSPOSED),
            conv.bias is not None,
            conv.dilation,
            conv.padding_mode,
        )

    def forward(self, x, output_size=None):
        dims = x.dim() - 2
        padding = self._output_padding(
            x, output_size, self.stride, self.padding, self.kernel_size, dims, self.dilation
        )
        operator = getattr(F, f"conv_transpose{dims}d")
        return operator(
            x, self.get_weight(), self.bias, self.stride, self.padding, padding, self.groups, self.dilation
        )


class Conv1d(_ConvNd, nn.Conv1d):
    """Conv1d on rounded weights."""


class Conv2d(_ConvNd, nn.Conv2d):
    """Conv2d on rounded weights."""


class Conv3d(_ConvNd, nn.Conv3d):
    """Conv3d on rounded weights."""


class ConvTranspose1d(_ConvTransposeNd, nn.ConvTranspose1d):
    """ConvTranspose1d on rounded weights."""


class ConvTranspose2d(_ConvTransposeNd, nn.ConvTranspose2d):
    """ConvTranspose2d on rounded weights."""


class ConvTranspose3d(_ConvTransposeNd, nn.ConvTranspose3d):
    """ConvTranspose3d on rounded weights."""
