"""The module in which PyTorch has functional tensors; they are those of `_functorch.functional_tensors`."""

import importlib


def __getattr__(name):
    home = importlib.import_module("rushlight._functorch.functional_tensors")
    if name not in home.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(home, name)


def __dir__():
    return importlib.import_module("rushlight._functorch.functional_tensors").__all__
