"""Kernels in Python and the dispatcher: here those that a program registers are always seen.

PyTorch has a switch for them; its contexts change nothing of what operators compute."""

import contextlib

__all__ = ["enable_python_dispatcher", "no_python_dispatcher"]


def enable_python_dispatcher():
    """A context in which kernels in Python are used, as they are everywhere."""
    return contextlib.nullcontext()


no_python_dispatcher = enable_python_dispatcher
