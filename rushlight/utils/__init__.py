"""Utilities around training: data loading, hooks, checkpoints. Submodules are loaded on first use."""

import os
from importlib import import_module
from importlib.util import find_spec


def __getattr__(name):
    if name == "swap_tensors":
        return import_module(f"{__name__}._swap").swap_tensors
    if name == "cmake_prefix_path":  # for find_package(Rushlight), and for find_package(Torch)
        return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "share", "cmake")
    full = f"{__name__}.{name}"
    if name.startswith("__") or find_spec(full) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(full)
