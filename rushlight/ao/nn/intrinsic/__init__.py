"""Layers that are computed as one."""

from .modules import *
from .modules import __all__ as __all__
from .modules import _FusedModule
