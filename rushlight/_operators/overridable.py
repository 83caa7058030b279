"""Functions written in Python that ``__torch_function__`` of their arguments, or of a mode, may take over."""

import types

import rushlight
from rushlight import _C


def overridable(function, takes_lists=False):
    """The function, but arguments that define ``__torch_function__`` are asked first; with takes_lists, the
    elements of lists too."""
    return _C._overridable(function, takes_lists)


def make_overridable(namespace, lists=(), skip=(), belong_to_top=False):
    """Do so for all public functions of a module, which from then on belong to it by name.

    With belong_to_top, those that `torch` shows belong to `torch`, by which scripts and fx know them."""
    shown = rushlight._HOME_OF if belong_to_top else ()  # type: ignore[attr-defined]
    for name, function in list(namespace.items()):
        if not isinstance(function, types.FunctionType):
            continue
        if name in shown:
            function.__module__ = rushlight.__name__
        if name.startswith("_") or name in skip:
            continue
        namespace[name] = made = overridable(function, takes_lists=name in lists)
        if name not in shown:
            made.__module__ = namespace["__name__"]
