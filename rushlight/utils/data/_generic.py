"""Classes that take their elements' type in brackets, as those of `typing` do, which is slow to load."""

from types import GenericAlias

T_co = None  # in the place of the type variable while the classes are made


class Generic:
    """`Dataset[int]` notes what is in the brackets, and is the class itself as a base and when called."""

    __class_getitem__ = classmethod(GenericAlias)


_made = {}


def type_variable(module, name):
    """`T_co`, with which programs annotate; what else they ask a module for it lacks."""
    if name != "T_co":
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    if not _made:
        from typing import TypeVar

        _made[name] = TypeVar(name, covariant=True)
    return _made[name]
