"""Convolutions with integer weights; operands get their scale at each call, results are numbers."""

import warnings

import rushlight
from rushlight.ao.nn.quantized.modules import conv as _static

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Dynamic:
    """What they share."""

    _dims: int
    _transposed: bool

    def __init__(self, *args, reduce_range=True, **kwargs):
        warnings.warn(
            f"The current implementation of the {self._get_name()} module has poor numerical accuracy and "
            "its use is not recommended",
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)

    def _get_name(self):
        return f"DynamicQuantizedConv{'Transpose' if self._transposed else ''}{self._dims}d"


class Conv1d(_Dynamic, _static.Conv1d):
    """Conv1d with integer weights."""

    def forward(self, input, reduce_range: bool = True):
        return rushlight.ops.quantized.conv1d_dynamic(
            self._bordered(input), self._packed_params, reduce_range
        )


class Conv2d(_Dynamic, _static.Conv2d):
    """Conv2d with integer weights."""

    def forward(self, input, reduce_range: bool = True):
        return rushlight.ops.quantized.conv2d_dynamic(
            self._bordered(input), self._packed_params, reduce_range
        )


class Conv3d(_Dynamic, _static.Conv3d):
    """Conv3d with integer weights."""

    def forward(self, input, reduce_range: bool = True):
        return rushlight.ops.quantized.conv3d_dynamic(
            self._bordered(input), self._packed_params, reduce_range
        )


class ConvTranspose1d(_Dynamic, _static.ConvTranspose1d):
    """ConvTranspose1d with integer weights."""

    def forward(self, input, reduce_range: bool = True):
        return rushlight.ops.quantized.conv_transpose1d_dynamic(
            self._bordered(input), self._packed_params, reduce_range
        )


class ConvTranspose2d(_Dynamic, _static.ConvTranspose2d):
    """ConvTranspose2d with integer weights."""

    def forward(self, input, reduce_range: bool = True):
        return rushlight.ops.quantized.conv_transpose2d_dynamic(
            self._bordered(input), self._packed_params, reduce_range
        )


class ConvTranspose3d(_Dynamic, _static.ConvTranspose3d):
    """ConvTranspose3d with integer weights."""

    def forward(self, input, reduce_range: bool = True):
        return rushlight.ops.quantized.conv_transpose3d_dynamic(
            self._bordered(input), self._packed_params, reduce_range
        )
