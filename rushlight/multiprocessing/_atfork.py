"""Code to run in forked children."""

import os

__all__ = ["register_after_fork"]


def register_after_fork(func):
    """Calls ``func()`` in every child that is forked from this process, however it is forked."""
    os.register_at_fork(after_in_child=func)
