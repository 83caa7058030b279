"""Modules under a former name: they have the names of where their subject went."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from importlib import import_module
from types import ModuleType

__all__ = ["take_names"]

_HOMES = {
    **{f"rushlight.nn.{name}": f"rushlight.ao.nn.{name}" for name in ("intrinsic", "qat", "quantizable")},
    "rushlight.nn.quantized": "rushlight.ao.nn.quantized",
    "rushlight.quantization": "rushlight.ao.quantization",
}


def take_names(namespace, home):
    """Put the public names of a module into another one's namespace; it finds private ones when asked. It is
    loaded only when that one is. Modules below it are no names of it: which there are depends on imports."""
    module = import_module(home)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    ]
    namespace.update({name: getattr(module, name) for name in names})
    namespace["__all__"] = list(names)

    def __getattr__(name):
        if name.startswith("__") or not hasattr(module, name):
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        return getattr(module, name)

    namespace["__getattr__"] = __getattr__
    if _Finder not in sys.meta_path:
        sys.meta_path.append(_Finder)


def _home_of(name):
    for former, home in _HOMES.items():
        if name.startswith(former + "."):
            return home + name[len(former) :]
    return None


class _Finder:
    """Finds modules of former packages that have no file of their own."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        home = _home_of(fullname)
        if home is None:
            return None
        try:
            found = importlib.util.find_spec(home)
        except ModuleNotFoundError:
            return None
        if found is None:
            return None
        package = found.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(fullname, _Loader(home), is_package=package)


class _Loader(importlib.abc.Loader):
    def __init__(self, home):
        self.home = home

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__doc__ = f"The former home of `{self.home.replace('rushlight', 'torch', 1)}`."
        take_names(vars(module), self.home)
