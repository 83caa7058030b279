"""Convolutions with rounded weights."""

from rushlight import nn
from rushlight.ao.nn.intrinsic.modules.fused import _FusedModule

from ._rounding import check_source, round_weights

__all__ = ["Conv1d", "Conv2d", "Conv3d"]

_NAMES = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups")


class _ConvNd(nn.modules.conv._ConvNd):
    """What the three share: the weight passes through ``weight_fake_quant`` at each call."""

    _FLOAT_MODULE: type

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        qconfig=None,
        device=None,
        dtype=None,
    ):
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )
        round_weights(self, qconfig, device, dtype)

    def forward(self, input):
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a plain layer, or a fused one; weights are shared."""
        check_source(cls, mod)
        plain = mod[0] if isinstance(mod, _FusedModule) else mod
        made = cls(
            *(getattr(plain, name) for name in _NAMES),
            bias=plain.bias is not None,
            padding_mode=plain.padding_mode,
            qconfig=getattr(plain, "qconfig", None) or mod.qconfig,
        )
        made.weight, made.bias = plain.weight, plain.bias
        return made

    def to_float(self):
        """The plain layer with these weights, fused as it was."""
        cls = type(self)
        plain = cls._FLOAT_CONV_MODULE(
            *(getattr(self, name) for name in _NAMES), self.bias is not None, self.padding_mode
        )
        plain.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            plain.bias = nn.Parameter(self.bias.detach())
        if issubclass(cls, _FusedModule):
            parts = [plain]
            if hasattr(cls, "_FLOAT_RELU_MODULE"):
                parts.append(cls._FLOAT_RELU_MODULE())
            fused = cls._FLOAT_MODULE(*parts)
            fused.train(self.training)
            return fused
        return plain


class Conv1d(_ConvNd, nn.Conv1d):
    """Conv1d with rounded weights."""

    _FLOAT_MODULE = nn.Conv1d
    _FLOAT_CONV_MODULE = nn.Conv1d


class Conv2d(_ConvNd, nn.Conv2d):
    """Conv2d with rounded weights."""

    _FLOAT_MODULE = nn.Conv2d
    _FLOAT_CONV_MODULE = nn.Conv2d


class Conv3d(_ConvNd, nn.Conv3d):
    """Conv3d with rounded weights."""

    _FLOAT_MODULE = nn.Conv3d
    _FLOAT_CONV_MODULE = nn.Conv3d
