"""Ranges by the names of Intel's ITT. No build has VTune's library, as `is_available` says; the ranges appear
in profiles of `torch.profiler`, as those of `record_function` do."""

import threading
from contextlib import contextmanager

from rushlight.autograd.profiler import record_function

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]

_open = threading.local()  # ranges of this thread, innermost last


def is_available():
    """Whether VTune sees the ranges: never."""
    return False


def range_push(msg):
    """Begin a range, inside of those that this thread has begun."""
    if not hasattr(_open, "ranges"):
        _open.ranges = []
    _open.ranges.append(record_function(msg))
    _open.ranges[-1].__enter__()


def range_pop():
    """End the range that this thread began last. Raises RuntimeError if there is none."""
    if not getattr(_open, "ranges", None):
        raise RuntimeError("range_pop: this thread has begun no range; call range_push first")
    _open.ranges.pop().__exit__(None, None, None)


def mark(msg):
    """Record a moment: a range without contents."""
    with record_function(msg):
        return


@contextmanager
def range(msg, *args, **kwargs):
    """A block as a range; the arguments are formatted into the text."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
