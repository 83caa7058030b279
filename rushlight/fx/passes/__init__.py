"""Passes: programs that look at graphs or change them."""

import importlib


def __getattr__(name):
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(f"module 'torch.fx.passes' has no attribute {name!r}") from None
