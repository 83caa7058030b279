"""Errors of programs that read exported graphs."""

__all__ = ["InternalError"]


class InternalError(Exception):
    """A pass met a graph that it thought impossible."""
