"""Tracing below autograd, simple optimisations, and names of symbolic shapes."""

from rushlight._command.submodules import submodules_of

__getattr__ = submodules_of(__name__)
