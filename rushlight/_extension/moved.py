"""Modules under a former name: they have the names of where their subject went."""

from importlib import import_module

__all__ = ["take_names"]


def take_names(namespace, home):
    """Put the public names of a module into another one's namespace. It is loaded only when that one is."""
    module = import_module(home)
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    namespace.update({name: getattr(module, name) for name in names})
    namespace["__all__"] = list(names)
