"""Functions written in Python that ``__torch_function__`` of their arguments, or of a mode, may take over."""

import functools
import types

from rushlight import _C

_has, _handle = _C._has_torch_function, _C._handle_torch_function


def _relevant(args, kwargs):
    """All arguments, and the elements of those that are lists."""
    found = []
    for value in (*args, *kwargs.values()):
        found += value if isinstance(value, (list, tuple)) else (value,)
    return found


def overridable(function, takes_lists=False):
    """The function, but arguments that define ``__torch_function__`` are asked first."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if _has(args) or (kwargs and _has(tuple(kwargs.values()))):
            return _handle(wrapper, _relevant(args, kwargs), *args, **kwargs)
        return function(*args, **kwargs)

    @functools.wraps(function)
    def list_wrapper(*args, **kwargs):
        relevant = _relevant(args, kwargs)
        if _has(relevant):
            return _handle(list_wrapper, relevant, *args, **kwargs)
        return function(*args, **kwargs)

    return list_wrapper if takes_lists else wrapper


def make_overridable(namespace, lists=(), skip=()):
    """Do so for all public functions of a module, which from then on belong to it by name."""
    for name, function in list(namespace.items()):
        if name.startswith("_") or name in skip or not isinstance(function, types.FunctionType):
            continue
        made = overridable(function, takes_lists=name in lists)
        made.__module__ = namespace["__name__"]
        namespace[name] = made
