"""Mixing groups of channels."""

from rushlight import Tensor
from rushlight.nn import functional as F

from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """The channels of each group dealt out over all groups (Zhang and others 2018).

    Args:
        groups (int): how many groups, of which the channels are a multiple.

    Shape: (batch, channels, ..), kept.

    Formula: the channels as (groups, n) transposed

    Raises: RuntimeError where the channels are no multiple.

    Example:
        >>> torch.nn.ChannelShuffle(2)(torch.arange(4.0).view(1, 4, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    __constants__ = ["groups"]

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self):
        return f"groups={self.groups}"
