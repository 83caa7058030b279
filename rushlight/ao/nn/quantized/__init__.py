"""Layers that compute with integers."""

from rushlight._command.submodules import submodules_of

from . import functional as functional
from .modules import *
from .modules import MaxPool2d as MaxPool2d
from .modules import __all__ as __all__

__getattr__ = submodules_of(__name__)
