"""What losses share: the reduction, and a factor of each class."""

from rushlight._command.names import show_from
from rushlight.nn._reduction import legacy_get_string

from .module import Module


class _Loss(Module):
    __constants__ = ["reduction"]

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = legacy_get_string(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


show_from("nn.modules.loss", _Loss, _WeightedLoss)
