"""Passes: programs that look at graphs or change them."""

from rushlight._command.submodules import submodules_of

__getattr__ = submodules_of(__name__)
