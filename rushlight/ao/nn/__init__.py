"""Layers of quantised models: fused ones, those of training, and those that compute with integers."""

import importlib

__all__ = ["intrinsic", "qat", "quantizable", "quantized"]


def __getattr__(name):
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
