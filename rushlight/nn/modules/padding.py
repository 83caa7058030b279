"""Padding in four ways, in one to three dimensions."""

from rushlight import Tensor
from rushlight.nn import functional as F

from .module import Module
from .utils import _ntuple, _pair, _quadruple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

_sextuple = _ntuple(6)


class _Pad1d:
    _sides = staticmethod(_pair)
    _dims = (2, 3)


class _Pad2d:
    _sides = staticmethod(_quadruple)
    _dims = (3, 4)


class _Pad3d:
    _sides = staticmethod(_sextuple)
    _dims = (4, 5)


class _PadNd(Module):
    __constants__ = ["padding"]
    _mode: str

    def __init__(self, padding):
        super().__init__()
        self.padding = self._sides(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def _check_input_dim(self, input):
        if input.dim() not in self._dims:
            raise ValueError(
                f"expected {self._dims[0]}D or {self._dims[1]}D input (got {input.dim()}D input)"
            )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class CircularPad1d(_Pad1d, _CircularPadNd):
    """The last dimension continued periodically."""


class CircularPad2d(_Pad2d, _CircularPadNd):
    """The last two dimensions continued periodically."""


class CircularPad3d(_Pad3d, _CircularPadNd):
    """The last three dimensions continued periodically."""


class ConstantPad1d(_Pad1d, _ConstantPadNd):
    """value on both sides of the last dimension."""


class ConstantPad2d(_Pad2d, _ConstantPadNd):
    """value around the last two dimensions."""


class ConstantPad3d(_Pad3d, _ConstantPadNd):
    """value around the last three dimensions."""


class ReflectionPad1d(_Pad1d, _ReflectionPadNd):
    """The last dimension mirrored at its border elements."""


class ReflectionPad2d(_Pad2d, _ReflectionPadNd):
    """The last two dimensions mirrored at their border elements."""


class ReflectionPad3d(_Pad3d, _ReflectionPadNd):
    """The last three dimensions mirrored at their border elements."""


class ReplicationPad1d(_Pad1d, _ReplicationPadNd):
    """The border of the last dimension repeated."""


class ReplicationPad2d(_Pad2d, _ReplicationPadNd):
    """The border of the last two dimensions repeated."""


class ReplicationPad3d(_Pad3d, _ReplicationPadNd):
    """The border of the last three dimensions repeated."""


class _ZeroPad:
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Zeros on both sides of the last dimension."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Zeros around the last two dimensions."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Zeros around the last three dimensions."""
