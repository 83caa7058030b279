"""Marks in models that may be quantised: where integers would begin and end."""

from rushlight.nn import Module

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class QuantStub(Module):
    """Where a quantised model would turn floating-point numbers into integers; passes them on."""

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class DeQuantStub(QuantStub):
    """Where a quantised model would turn integers back; passes numbers on."""


class QuantWrapper(Module):
    """A module between the two stubs."""

    def __init__(self, module):
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant, self.dequant = QuantStub(qconfig), DeQuantStub(qconfig)
        self.module = module
        self.train(module.training)

    def forward(self, x):
        return self.dequant(self.module(self.quant(x)))
