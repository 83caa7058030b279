"""Activation functions made of straight lines, but `ReLU` and its leaky forms."""

import warnings

from rushlight import Tensor
from rushlight._command.names import show_from
from rushlight.nn import functional as F

from .module import Module


class _Inplace(Module):
    """An activation whose only option is to work in place."""

    __constants__ = ["inplace"]

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class Threshold(Module):
    """Replaces what is not above a threshold.

    Args:
        threshold (float): the threshold.
        value (float): what is put there.
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = x where x > threshold, else value

    Example:
        >>> torch.nn.Threshold(0.5, 9.0)(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([9., 9., 2.])
    """

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """Leaky ReLU with random slopes in training (Xu and others 2015).

    Args:
        lower (float): the least slope.
        upper (float): the largest slope.
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = x where x > 0, else a * x, a ~ U(lower, upper); after eval() a = (lower + upper) / 2

    Example:
        >>> torch.nn.RReLU(0.1, 0.3).eval()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.4000,  0.0000,  2.0000])
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Hardtanh(Module):
    """Cuts to a range.

    Args:
        min_val (float): the least value.
        max_val (float): the largest value.
        inplace (bool): whether the input is overwritten.
        min_value, max_value: deprecated names of the two.

    Shape: that of the input.

    Formula: y = min(max(x, min_val), max_val)

    Raises: AssertionError where `max_val` is not above `min_val`.

    Example:
        >>> torch.nn.Hardtanh()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-1.,  0.,  1.])
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__()
        for name, value in (("min", min_value), ("max", max_value)):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{name}_value` is deprecated and rename to `{name}_val`",
                    FutureWarning,
                    stacklevel=2,
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """ReLU cut at six.

    Args:
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = min(max(x, 0), 6)

    Example:
        >>> torch.nn.ReLU6()(torch.tensor([-2.0, 3.0, 8.0]))
        tensor([0., 3., 6.])
    """

    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class Hardsigmoid(_Inplace):
    """A sigmoid of straight lines.

    Args:
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = min(max(x + 3, 0), 6) / 6

    Example:
        >>> torch.nn.Hardsigmoid()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([0.1667, 0.5000, 0.8333])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    extra_repr = Module.extra_repr


class Hardswish(_Inplace):
    """SiLU with a sigmoid of straight lines (Howard and others 2019).

    Args:
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = x * min(max(x + 3, 0), 6) / 6

    Example:
        >>> torch.nn.Hardswish()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.3333,  0.0000,  1.6667])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    extra_repr = Module.extra_repr


class Hardshrink(Module):
    """Zero near zero.

    Args:
        lambd (float): the bound.

    Shape: that of the input.

    Formula: y = x where |x| > lambd, else 0

    Example:
        >>> torch.nn.Hardshrink()(torch.tensor([-2.0, 0.25, 2.0]))
        tensor([-2.,  0.,  2.])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self):
        return f"{self.lambd}"


class Softshrink(Module):
    """Moves each element towards zero.

    Args:
        lambd (float): how far, not negative.

    Shape: that of the input.

    Formula: y = sign(x) * max(|x| - lambd, 0)

    Raises: RuntimeError where `lambd` is negative.

    Example:
        >>> torch.nn.Softshrink()(torch.tensor([-2.0, 0.25, 2.0]))
        tensor([-1.5000,  0.0000,  1.5000])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self):
        return str(self.lambd)


show_from(
    "nn.modules.activation", Threshold, RReLU, Hardtanh, ReLU6, Hardsigmoid, Hardswish, Hardshrink, Softshrink
)
