"""Layers that compute with integers."""

from . import functional as functional
from .modules import *
from .modules import MaxPool2d as MaxPool2d
from .modules import __all__ as __all__
