"""Where an exporter finds modules, and by which names objects are found in them."""

import importlib
import pickle
from abc import ABC, abstractmethod

import rushlight
from rushlight._command.names import PACKAGE, own_name, public_name
from rushlight.package._mangling import demangle, get_mangle_prefix, is_mangled

__all__ = ["Importer", "ObjMismatchError", "ObjNotFoundError", "OrderedImporter", "sys_importer"]


class ObjNotFoundError(Exception):
    """An importer has no object of this name."""


class ObjMismatchError(Exception):
    """An importer has another object of this name."""


class Importer(ABC):
    """Modules by name. Subclasses say `import_module`."""

    modules: dict

    @abstractmethod
    def import_module(self, module_name):
        """The module of a name."""

    def get_name(self, obj, name=None):
        """(module, name) by which this importer gives the object; raises if it gives another one, or none."""
        name = name or _said_name(obj)
        module_name = self.whichmodule(obj, name)
        try:
            found = _resolve(self.import_module(demangle(module_name)), name)
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {module_name}.{name}") from None
        if found is obj:
            return module_name, name
        mine, theirs = _origin(getattr(obj, "__module__", None)), _origin(getattr(found, "__module__", None))
        raise ObjMismatchError(
            f"\n\nThe object provided is from '{module_name}', which is coming from {mine}.\nHowever, when "
            f"we import '{demangle(module_name)}', it's coming from {theirs}.\nTo fix this, make sure this "
            "'PackageExporter's importer lists the 'PackageImporter' that the object came from before others."
        )

    def whichmodule(self, obj, name):
        """The name of the module in which an object lies."""
        return getattr(obj, "__module__", None) or pickle.whichmodule(obj, name)  # type: ignore[attr-defined]


def _said_name(obj):
    # Functions, classes and what reduces to a name say how they want to be found.
    if not isinstance(obj, type) and type(obj) not in pickle._Pickler.dispatch and hasattr(obj, "__reduce__"):
        try:
            reduced = obj.__reduce__()
        except Exception:
            reduced = None
        if isinstance(reduced, str):
            return reduced
    return getattr(obj, "__qualname__", None) or obj.__name__


def _resolve(module, name):
    found = module
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _origin(module_name):
    if module_name is not None and is_mangled(module_name):
        return f"the package {get_mangle_prefix(module_name)}"
    return "the current Python environment"


class _SysImporter(Importer):
    """What ``import`` gives; `torch` is this library under either of its names."""

    def import_module(self, module_name):
        name = own_name(module_name)
        if name == module_name:
            return importlib.import_module(name)
        # Under the alias there is one module of each name, whose own name is torch's.
        name = rushlight.__name__ + name[len(PACKAGE) :]
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            found = rushlight
            for part in name.split(".")[1:]:
                if not hasattr(found, part):
                    raise
                found = getattr(found, part)
            return found

    def whichmodule(self, obj, name):
        if isinstance(obj, (rushlight.dtype, rushlight.layout, rushlight.memory_format)):
            return "torch"
        return public_name(str(super().whichmodule(obj, name)))


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Asks importers in turn."""

    def __init__(self, *importers):
        self._importers = list(importers)

    def import_module(self, module_name):
        problem = ModuleNotFoundError(module_name)
        for importer in self._importers:
            if not isinstance(importer, Importer):
                raise TypeError(
                    f"{importer} is not a Importer. All importers in OrderedImporter must inherit from "
                    "Importer."
                )
            try:
                return importer.import_module(module_name)
            except ModuleNotFoundError as error:
                problem = error
        raise problem

    def whichmodule(self, obj, name):
        for importer in self._importers:
            found = importer.whichmodule(obj, name)
            if found not in (None, "__main__"):
                return found
        return "__main__"
