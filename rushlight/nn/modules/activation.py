"""Activation functions as modules."""

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.parameter import Parameter

from ._rectifiers import (
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    ReLU6,
    RReLU,
    Softshrink,
    Threshold,
    _Inplace,
)
from .module import Module

__all__ = [
    "Threshold", "ReLU", "RReLU", "Hardtanh", "ReLU6", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU", "Mish",
    "Hardswish", "ELU", "CELU", "SELU", "GLU", "GELU", "Hardshrink", "LeakyReLU", "LogSigmoid", "Softplus",
    "Softshrink", "MultiheadAttention", "PReLU", "Softsign", "Tanhshrink", "Softmin", "Softmax", "Softmax2d",
    "LogSoftmax",
]  # fmt: skip


class ReLU(_Inplace):
    """max(0, x).

    Args:
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = max(x, 0)

    Example:
        >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    Shape: that of the input.

    Formula: y = 1 / (1 + e**-x)

    Example:
        >>> torch.nn.Sigmoid()(torch.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return torch.sigmoid(input)


class Tanh(Module):
    """tanh(x).

    Shape: that of the input.

    Formula: y = (e**x - e**-x) / (e**x + e**-x)

    Example:
        >>> torch.nn.Tanh()(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return torch.tanh(input)


class SiLU(_Inplace):
    """x sigmoid(x).

    Args:
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = x / (1 + e**-x)

    Example:
        >>> torch.nn.SiLU()(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(_Inplace):
    """Mish (Misra 2020).

    Args:
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = x * tanh(log(1 + exp(x)))

    Example:
        >>> torch.nn.Mish()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.2525,  0.0000,  1.9440])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


class ELU(Module):
    """Exponential linear unit (Clevert and others 2016).

    Args:
        alpha (float): the negative limit.
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = x where x > 0, else alpha * (exp(x) - 1)

    Example:
        >>> torch.nn.ELU()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.8647,  0.0000,  2.0000])
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self):
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(Module):
    """Continuously differentiable ELU (Barron 2017).

    Args:
        alpha (float): the negative limit.
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = max(0, x) + min(0, alpha * (exp(x / alpha) - 1))

    Example:
        >>> torch.nn.CELU()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.8647,  0.0000,  2.0000])
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)

    extra_repr = ELU.extra_repr


class SELU(_Inplace):
    """Self-normalizing ELU (Klambauer and others 2017): keeps zero mean and unit variance through layers.

    Args:
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = 1.0507 * (max(0, x) + min(0, 1.6733 * (exp(x) - 1)))

    Example:
        >>> torch.nn.SELU()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-1.5202,  0.0000,  2.1014])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class GLU(Module):
    """Gated linear unit (Dauphin and others 2017): one half times the sigmoid of the other.

    Args:
        dim (int): the dimension that is halved.

    Shape: (.., 2 n, ..) becomes (.., n, ..).

    Formula: y = a * sigmoid(b), x the halves a and b

    Raises: RuntimeError where the size is odd.

    Example:
        >>> torch.nn.GLU()(torch.tensor([[1.0, 2.0, 0.0, 0.0]]))
        tensor([[0.5000, 1.0000]])
    """

    __constants__ = ["dim"]

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class GELU(Module):
    """x Φ(x), exactly or with approximate='tanh'.

    Args:
        approximate (str): 'none', or 'tanh' for the faster form.

    Shape: that of the input.

    Formula: y = x * Phi(x), Phi being the distribution function of N(0, 1)

    Example:
        >>> torch.nn.GELU()(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8413])
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class LeakyReLU(Module):
    """ReLU that lets a part of negative values through.

    Args:
        negative_slope (float): the part.
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = x where x > 0, else negative_slope * x

    Example:
        >>> torch.nn.LeakyReLU(0.1)(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.2000,  0.0000,  2.0000])
    """

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self):
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class LogSigmoid(Module):
    """Logarithm of the sigmoid, exact where the sigmoid is near 0 or 1.

    Shape: that of the input.

    Formula: y = log(1 / (1 + exp(-x)))

    Example:
        >>> torch.nn.LogSigmoid()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-2.1269, -0.6931, -0.1269])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Module):
    """Smooth ReLU.

    Args:
        beta (float): how sharply it bends.
        threshold (float): it is a straight line where beta * x is above.

    Shape: that of the input.

    Formula: y = log(1 + exp(beta * x)) / beta

    Example:
        >>> torch.nn.Softplus()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([0.1269, 0.6931, 2.1269])
    """

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Module):
    """Leaky ReLU with learned slopes (He and others 2015).

    Args:
        num_parameters (int): 1, or as many as the input has channels.
        init (float): the slopes at first.
        device, dtype: where and in which dtype the parameters are made.

    Shape: that of the input.

    Formula: y = x where x > 0, else weight * x

    Raises: RuntimeError where the channels do not fit.

    Example:
        >>> torch.nn.PReLU()(torch.tensor([-2.0, 0.0, 2.0])).detach()
        tensor([-0.5000,  0.0000,  2.0000])
    """

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(torch.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        torch.nn.init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """A sigmoid with slow tails.

    Shape: that of the input.

    Formula: y = x / (1 + |x|)

    Example:
        >>> torch.nn.Softsign()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.6667,  0.0000,  0.6667])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """What the hyperbolic tangent leaves.

    Shape: that of the input.

    Formula: y = x - tanh(x)

    Example:
        >>> torch.nn.Tanhshrink()(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-1.0360,  0.0000,  1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _AlongDim(Module):
    """A normalization along dim; None lets the function choose, with a warning."""

    __constants__ = ["dim"]

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self):
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """Softmax of the negative input: the least value gets the most.

    Args:
        dim (int): the dimension that is normalized; None is deprecated and chooses 0 or 1 by the input's
            rank.

    Shape: that of the input.

    Formula: y = exp(-x) / sum of exp(-x) along `dim`

    Raises: IndexError where there is no such dimension.

    Example:
        >>> torch.nn.Softmin(dim=1)(torch.tensor([[0.0, 9.0]]))
        tensor([[9.9988e-01, 1.2339e-04]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongDim):
    """Values from 0 to 1 that sum to 1 along a dimension.

    Args:
        dim (int): the dimension that is normalized; None is deprecated and chooses 0 or 1 by the input's
            rank.

    Shape: that of the input.

    Formula: y = exp(x) / sum of exp(x) along `dim`

    Raises: IndexError where there is no such dimension.

    Example:
        >>> torch.nn.Softmax(dim=1)(torch.tensor([[0.0, 0.0], [0.0, 9.0]]))
        tensor([[5.0000e-01, 5.0000e-01],
                [1.2339e-04, 9.9988e-01]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels at each place of an image.

    Shape: (batch, channels, height, width) or (channels, height, width), kept.

    Formula: y[c] = exp(x[c]) / sum over k of exp(x[k])

    Raises: ValueError where the input has neither three nor four dimensions.

    Example:
        >>> torch.nn.Softmax2d()(torch.zeros(1, 2, 1, 1)).flatten()
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """Logarithm of the softmax, exact where that is near 0.

    Args:
        dim (int): the dimension that is normalized; None is deprecated and chooses 0 or 1 by the input's
            rank.

    Shape: that of the input.

    Formula: y = x - log of the sum of exp(x) along `dim`

    Raises: IndexError where there is no such dimension.

    Example:
        >>> torch.nn.LogSoftmax(dim=1)(torch.tensor([[0.0, 0.0]]))
        tensor([[-0.6931, -0.6931]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


from .attention import MultiheadAttention  # noqa: E402  (its place in the API is this module)
