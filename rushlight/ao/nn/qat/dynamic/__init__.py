"""Layers of training for models whose operands get their scale at each call."""

from rushlight._command.submodules import submodules_of

from .modules import *

__getattr__ = submodules_of(__name__)
