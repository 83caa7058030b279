"""Marks for Intel's VTune, whose library no build here has: `is_available` says so, and marking raises.

Ranges of the program in a profile: `torch.profiler.record_function`."""

from contextlib import contextmanager

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available():
    """False: there is no build with ITT."""
    return False


def _refuse():
    raise RuntimeError(
        "ITT functions not installed. Are you sure you have a ITT build? Use torch.profiler.record_function "
        "to mark a range in a profile."
    )


def range_push(msg):
    """Begin a range; raises, see `is_available`."""
    _refuse()


def range_pop():
    """End a range; raises, see `is_available`."""
    _refuse()


def mark(msg):
    """Mark a moment; raises, see `is_available`."""
    _refuse()


@contextmanager
def range(msg, *args, **kwargs):
    """A block as a range; raises, see `is_available`."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
