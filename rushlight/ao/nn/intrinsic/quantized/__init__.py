"""Fused layers that compute with integers."""

import importlib

from .modules import *

__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearReLU",
    "LinearLeakyReLU",
    "LinearTanh",
    "ConvAdd2d",
    "ConvAddReLU2d",
]


def __getattr__(name):
    if name == "dynamic":
        return importlib.import_module(f"{__name__}.dynamic")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
