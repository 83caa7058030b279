"""Layers of training: they compute with rounded weights."""

from rushlight._command.submodules import submodules_of

from .modules import *

__getattr__ = submodules_of(__name__)
