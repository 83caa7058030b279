"""A function of tensors as a module, for what takes modules alone."""

from rushlight import nn

__all__ = ["FunctionModule"]


class FunctionModule(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)
