"""Layers that are computed as one."""

import importlib

from .modules import *
from .modules import __all__ as __all__
from .modules import _FusedModule

_PACKAGES = ("qat", "quantized")


def __getattr__(name):
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
