"""Random zeroing of elements or whole channels in training."""

from rushlight import Tensor
from rushlight._errors.advice import advised
from rushlight.nn import functional as F

from .module import Module

__all__ = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if p < 0 or p > 1:
            raise advised(ValueError(f"dropout probability has to be between 0 and 1, but got {p}"))
        self.p = p
        self.inplace = inplace

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Each element is zero with probability p; the others are scaled by 1 / (1 - p).

    Args:
        p (float): the probability with which an element is set to zero.
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = x * b / (1 - p), b ~ Bernoulli(1 - p), in training; y = x after eval()

    Raises: ValueError where `p` is not from 0 to 1.

    Example:
        >>> torch.nn.Dropout(0.5).eval()(torch.ones(2))
        tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Whole channels are zero with probability p; the others are scaled by 1 / (1 - p) (Tompson and others
    2015).

    Args:
        p (float): the probability.
        inplace (bool): whether the input is overwritten.

    Shape: (batch, channels, length), kept.

    Formula: y[c] = x[c] * b[c] / (1 - p), b ~ Bernoulli(1 - p), in training; y = x after eval()

    Raises: ValueError where `p` is not from 0 to 1.

    Example:
        >>> torch.nn.Dropout1d(0.5).eval()(torch.arange(4.0).view(1, 1, 4)).shape
        torch.Size([1, 1, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Whole channels are zero with probability p; the others are scaled by 1 / (1 - p) (Tompson and others
    2015).

    Args:
        p (float): the probability.
        inplace (bool): whether the input is overwritten.

    Shape: (batch, channels, height, width), kept.

    Formula: y[c] = x[c] * b[c] / (1 - p), b ~ Bernoulli(1 - p), in training; y = x after eval()

    Raises: ValueError where `p` is not from 0 to 1.

    Example:
        >>> torch.nn.Dropout2d(0.5).eval()(torch.ones(1, 1, 4, 4)).shape
        torch.Size([1, 1, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Whole channels are zero with probability p; the others are scaled by 1 / (1 - p) (Tompson and others
    2015).

    Args:
        p (float): the probability.
        inplace (bool): whether the input is overwritten.

    Shape: (batch, channels, depth, height, width), kept.

    Formula: y[c] = x[c] * b[c] / (1 - p), b ~ Bernoulli(1 - p), in training; y = x after eval()

    Raises: ValueError where `p` is not from 0 to 1.

    Example:
        >>> torch.nn.Dropout3d(0.5).eval()(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 4, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout to SELU's limit, which keeps mean and variance (Klambauer and others 2017).

    Args:
        p (float): the probability.
        inplace (bool): whether the input is overwritten.

    Shape: that of the input.

    Formula: y = a * (x * b + (1 - b) * -1.7581) + c, b ~ Bernoulli(1 - p), in training; y = x after eval()

    Raises: ValueError where `p` is not from 0 to 1.

    Example:
        >>> torch.nn.AlphaDropout(0.5).eval()(torch.ones(2))
        tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels.

    Args:
        p (float): the probability.
        inplace (bool): whether the input is overwritten.

    Shape: (batch, channels, ..), kept.

    Formula: that of `AlphaDropout`, one b for each channel

    Raises: ValueError where `p` is not from 0 to 1.

    Example:
        >>> torch.nn.FeatureAlphaDropout(0.5).eval()(torch.ones(1, 2, 1)).shape
        torch.Size([1, 2, 1])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
