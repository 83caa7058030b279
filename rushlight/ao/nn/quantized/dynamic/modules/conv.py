"""Convolutions with integer weights; operands get their scale at each call, results are numbers."""

import warnings

from rushlight.ao.nn.quantized.modules import conv as _static

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Dynamic:
    """What they share: the dynamic operator in place of the static one."""

    def __init__(self, *args, reduce_range=True, **kwargs):
        warnings.warn(
            f"The current implementation of the {self._get_name()} module has poor numerical "
            f"accuracy and its use is "
            "not recommended",
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)

    def _get_name(self):
        return f"DynamicQuantizedConv{'Transpose' if self._transposed else ''}{self._dims}d"

    def forward(self, input, reduce_range=True):
        return self._op("_dynamic")(self._bordered(input), self._packed_params, reduce_range)

    @classmethod
    def _named(cls, dims, transposed):
        base = getattr(_static, f"Conv{'Transpose' if transposed else ''}{dims}d")
        body = {"__doc__": f"{base.__name__} with integer weights.", "__module__": __name__}
        return type(base.__name__, (cls, base), body)


Conv1d, Conv2d, Conv3d = (_Dynamic._named(dims, False) for dims in (1, 2, 3))
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = (_Dynamic._named(dims, True) for dims in (1, 2, 3))
