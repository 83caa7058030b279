"""Contexts for code that implements function transforms."""

from contextlib import contextmanager

from rushlight._extension import functorch_names as _names

__all__ = ["enable_single_level_autograd_function"]


@contextmanager
def enable_single_level_autograd_function():
    """Inside, `_SingleLevelFunction.apply` records at the innermost transform alone."""
    before = _names.get_single_level_autograd_function_allowed()
    _names.set_single_level_autograd_function_allowed(True)
    try:
        yield
    finally:
        _names.set_single_level_autograd_function_allowed(before)
