"""Marks in models that may be quantised: where integers would begin and end."""

from abc import ABC, abstractmethod
from functools import partial

import rushlight
from rushlight.nn import Module

__all__ = ["DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QuantStub", "QuantWrapper"]


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


class _MadeLate:
    """A class with some of its arguments, made by a call: what ``with_args`` returns."""

    def __init__(self, maker):
        self.maker = maker

    def __call__(self, *args, **kwargs):
        return self.maker(*args, **kwargs)

    def with_args(self, **kwargs):
        return _MadeLate(partial(self.maker, **kwargs))

    def __repr__(self):
        return repr(self.maker)


class ObserverBase(ABC, Module):
    """Base of modules that watch numbers pass, to find a range for integers."""

    def __init__(self, dtype, is_dynamic=False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x):
        """Look at numbers and pass them on."""

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        """The scale and the zero point that the numbers seen so far ask for."""

    @classmethod
    def with_args(cls, **kwargs):
        return _MadeLate(partial(cls, **kwargs))


class FakeQuantizeBase(ABC, Module):
    """Base of modules that round numbers as integers would, and may be switched off while they watch."""

    def __init__(self):
        super().__init__()
        for name in ("fake_quant_enabled", "observer_enabled"):
            self.register_buffer(name, rushlight.tensor([1], dtype=rushlight.uint8))

    @abstractmethod
    def forward(self, x):
        """The rounded numbers, or the numbers themselves while disabled."""

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        """The scale and the zero point of the integers."""

    def enable_fake_quant(self, enabled=True):
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self):
        self.enable_fake_quant(False)

    def enable_observer(self, enabled=True):
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self):
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs):
        return _MadeLate(partial(cls, **kwargs))
