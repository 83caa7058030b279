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
    """The last dimension made longer, continued periodically.

    Args:
        padding (int or 2 ints): places at both ends; or (left, right).

    Shape: (batch, channels, length) becomes (batch, channels, l), each size + begin + end.

    Formula: y[i] = x[(i - left) mod size]

    Raises: RuntimeError where more is added than the input has.

    Example:
        >>> torch.nn.CircularPad1d((1, 2))(torch.arange(3.0).view(1, 1, 3))
        tensor([[[2., 0., 1., 2., 0., 1.]]])
    """


class CircularPad2d(_Pad2d, _CircularPadNd):
    """The last two dimensions made longer, continued periodically.

    Args:
        padding (int or 4 ints): places at both ends; or (left, right, top, bottom).

    Shape: (batch, channels, height, width) becomes (batch, channels, h, w), each size + begin + end.

    Formula: y[i] = x[(i - left) mod size], in each dimension

    Raises: RuntimeError where more is added than the input has.

    Example:
        >>> torch.nn.CircularPad2d(1)(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 4, 4])
    """


class CircularPad3d(_Pad3d, _CircularPadNd):
    """The last three dimensions made longer, continued periodically.

    Args:
        padding (int or 6 ints): places at both ends; or (left, right, top, bottom, front, back).

    Shape: (batch, channels, depth, height, width) becomes (batch, channels, d, h, w), each size + begin +
        end.

    Formula: y[i] = x[(i - left) mod size], in each dimension

    Raises: RuntimeError where more is added than the input has.

    Example:
        >>> torch.nn.CircularPad3d(1)(torch.ones(1, 1, 2, 2, 2)).shape
        torch.Size([1, 1, 4, 4, 4])
    """


class ConstantPad1d(_Pad1d, _ConstantPadNd):
    """The last dimension made longer, filled with a value.

    Args:
        padding (int or 2 ints): places at both ends; or (left, right).
        value (float): the value.

    Shape: (batch, channels, length) becomes (batch, channels, l), each size + begin + end.

    Formula: y[i] = x[i - left], outside `value`

    Example:
        >>> torch.nn.ConstantPad1d((1, 2), 9.0)(torch.arange(3.0).view(1, 1, 3))
        tensor([[[9., 0., 1., 2., 9., 9.]]])
    """


class ConstantPad2d(_Pad2d, _ConstantPadNd):
    """The last two dimensions made longer, filled with a value.

    Args:
        padding (int or 4 ints): places at both ends; or (left, right, top, bottom).
        value (float): the value.

    Shape: (batch, channels, height, width) becomes (batch, channels, h, w), each size + begin + end.

    Formula: y[i] = x[i - left], outside `value`, in each dimension

    Example:
        >>> torch.nn.ConstantPad2d(1, 9.0)(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 4, 4])
    """


class ConstantPad3d(_Pad3d, _ConstantPadNd):
    """The last three dimensions made longer, filled with a value.

    Args:
        padding (int or 6 ints): places at both ends; or (left, right, top, bottom, front, back).
        value (float): the value.

    Shape: (batch, channels, depth, height, width) becomes (batch, channels, d, h, w), each size + begin +
        end.

    Formula: y[i] = x[i - left], outside `value`, in each dimension

    Example:
        >>> torch.nn.ConstantPad3d(1, 9.0)(torch.ones(1, 1, 2, 2, 2)).shape
        torch.Size([1, 1, 4, 4, 4])
    """


class ReflectionPad1d(_Pad1d, _ReflectionPadNd):
    """The last dimension made longer, mirrored at the border elements.

    Args:
        padding (int or 2 ints): places at both ends; or (left, right).

    Shape: (batch, channels, length) becomes (batch, channels, l), each size + begin + end.

    Formula: y[i] = x at i - left, mirrored at 0 and size - 1

    Raises: RuntimeError where not less is added than the input has.

    Example:
        >>> torch.nn.ReflectionPad1d((1, 2))(torch.arange(3.0).view(1, 1, 3))
        tensor([[[1., 0., 1., 2., 1., 0.]]])
    """


class ReflectionPad2d(_Pad2d, _ReflectionPadNd):
    """The last two dimensions made longer, mirrored at the border elements.

    Args:
        padding (int or 4 ints): places at both ends; or (left, right, top, bottom).

    Shape: (batch, channels, height, width) becomes (batch, channels, h, w), each size + begin + end.

    Formula: y[i] = x at i - left, mirrored at 0 and size - 1, in each dimension

    Raises: RuntimeError where not less is added than the input has.

    Example:
        >>> torch.nn.ReflectionPad2d(1)(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 4, 4])
    """


class ReflectionPad3d(_Pad3d, _ReflectionPadNd):
    """The last three dimensions made longer, mirrored at the border elements.

    Args:
        padding (int or 6 ints): places at both ends; or (left, right, top, bottom, front, back).

    Shape: (batch, channels, depth, height, width) becomes (batch, channels, d, h, w), each size + begin +
        end.

    Formula: y[i] = x at i - left, mirrored at 0 and size - 1, in each dimension

    Raises: RuntimeError where not less is added than the input has.

    Example:
        >>> torch.nn.ReflectionPad3d(1)(torch.ones(1, 1, 2, 2, 2)).shape
        torch.Size([1, 1, 4, 4, 4])
    """


class ReplicationPad1d(_Pad1d, _ReplicationPadNd):
    """The last dimension made longer, filled with the border elements.

    Args:
        padding (int or 2 ints): places at both ends; or (left, right).

    Shape: (batch, channels, length) becomes (batch, channels, l), each size + begin + end.

    Formula: y[i] = x[min(max(i - left, 0), size - 1)]

    Example:
        >>> torch.nn.ReplicationPad1d((1, 2))(torch.arange(3.0).view(1, 1, 3))
        tensor([[[0., 0., 1., 2., 2., 2.]]])
    """


class ReplicationPad2d(_Pad2d, _ReplicationPadNd):
    """The last two dimensions made longer, filled with the border elements.

    Args:
        padding (int or 4 ints): places at both ends; or (left, right, top, bottom).

    Shape: (batch, channels, height, width) becomes (batch, channels, h, w), each size + begin + end.

    Formula: y[i] = x[min(max(i - left, 0), size - 1)], in each dimension

    Example:
        >>> torch.nn.ReplicationPad2d(1)(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 4, 4])
    """


class ReplicationPad3d(_Pad3d, _ReplicationPadNd):
    """The last three dimensions made longer, filled with the border elements.

    Args:
        padding (int or 6 ints): places at both ends; or (left, right, top, bottom, front, back).

    Shape: (batch, channels, depth, height, width) becomes (batch, channels, d, h, w), each size + begin +
        end.

    Formula: y[i] = x[min(max(i - left, 0), size - 1)], in each dimension

    Example:
        >>> torch.nn.ReplicationPad3d(1)(torch.ones(1, 1, 2, 2, 2)).shape
        torch.Size([1, 1, 4, 4, 4])
    """


class _ZeroPad:
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """The last dimension made longer, filled with zeros.

    Args:
        padding (int or 2 ints): places at both ends; or (left, right).

    Shape: (batch, channels, length) becomes (batch, channels, l), each size + begin + end.

    Formula: y[i] = x[i - left], outside 0

    Example:
        >>> torch.nn.ZeroPad1d((1, 2))(torch.arange(3.0).view(1, 1, 3))
        tensor([[[0., 0., 1., 2., 0., 0.]]])
    """


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """The last two dimensions made longer, filled with zeros.

    Args:
        padding (int or 4 ints): places at both ends; or (left, right, top, bottom).

    Shape: (batch, channels, height, width) becomes (batch, channels, h, w), each size + begin + end.

    Formula: y[i] = x[i - left], outside 0, in each dimension

    Example:
        >>> torch.nn.ZeroPad2d(1)(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 4, 4])
    """


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """The last three dimensions made longer, filled with zeros.

    Args:
        padding (int or 6 ints): places at both ends; or (left, right, top, bottom, front, back).

    Shape: (batch, channels, depth, height, width) becomes (batch, channels, d, h, w), each size + begin +
        end.

    Formula: y[i] = x[i - left], outside 0, in each dimension

    Example:
        >>> torch.nn.ZeroPad3d(1)(torch.ones(1, 1, 2, 2, 2)).shape
        torch.Size([1, 1, 4, 4, 4])
    """
