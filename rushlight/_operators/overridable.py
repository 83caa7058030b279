"""Functions written in Python that ``__torch_function__`` of their arguments, or of a mode, may take over."""

import types

from rushlight import _C


def overridable(function, takes_lists=False):
    """The function, but arguments that define ``__torch_function__`` are asked first; with takes_lists, the
    elements of lists too."""
    return _C._overridable(function, takes_lists)


def make_overridable(namespace, lists=(), skip=()):
    """Do so for all public functions of a module, which from then on belong to it by name."""
    for name, function in list(namespace.items()):
        if name.startswith("_") or name in skip or not isinstance(function, types.FunctionType):
            continue
        made = overridable(function, takes_lists=name in lists)
        made.__module__ = namespace["__name__"]
        namespace[name] = made
