"""Operators by what their records say of them, for those who meet operators as functions, by name."""

import functools

from rushlight import _C

__all__ = ["names_of"]


@functools.cache
def _overloads():
    found: dict = {}
    for record in _C._operator_records():
        found.setdefault(record["name"], []).append(record["traits"])
    return found


def names_of(fits):
    """The names of operators with an overload for which ``fits(traits)`` holds."""
    return frozenset(name for name, overloads in _overloads().items() if any(map(fits, overloads)))
