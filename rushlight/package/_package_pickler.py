"""The pickler and the unpickler of packages: names as importers know them."""

import pickle
from typing import Any

from rushlight import _utils
from rushlight._command.names import public_name
from rushlight._serialization.tensor_pickler import TensorPickler
from rushlight.package._mangling import demangle
from rushlight.package.importer import ObjMismatchError, ObjNotFoundError
from rushlight.serialization import _FullUnpickler

__all__ = ["PackagePickler", "PackageUnpickler"]


class PackagePickler(TensorPickler):
    """Writes classes and functions by the names under which the exporter's importer gives them.

    What has a method ``__reduce_package__`` writes itself by that."""

    def __init__(self, file, protocol, exporter):
        super().__init__(file, protocol, exporter._saver)
        self.exporter = exporter
        vars(self)["persistent_id"] = self._persistent_id
        self._reduced = []  # alive as long as their addresses tell them apart

    def _persistent_id(self, obj):
        if not isinstance(obj, type) and hasattr(obj, "__reduce_package__"):
            self._reduced.append(obj)
            return "reduce_package", self.exporter._number_of(obj), *obj.__reduce_package__(self.exporter)
        return self.saver.persistent_id(obj)

    def dump(self, obj):
        before = getattr(_utils._local, "saver", None)
        _utils._local.saver = self.saver
        try:
            super().dump(obj)
        finally:
            _utils._local.saver = before

    def save_global(self: Any, obj, name=None):
        if obj is type(None) or obj is type(NotImplemented) or obj is type(...):
            return super().save_global(obj, name)
        try:
            module, name = self.exporter.importer.get_name(obj, name)
        except (ObjNotFoundError, ObjMismatchError) as error:
            raise pickle.PicklingError(f"Can't pickle {obj}: {error}") from error
        module = demangle(public_name(module))
        if module.startswith("torch._C"):
            module = "torch"
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        elif "." in name:  # older protocols know names in modules alone
            outer, _, inner = name.rpartition(".")
            self.write(pickle.GLOBAL + b"builtins\ngetattr\n" + pickle.MARK)
            self.write(pickle.GLOBAL + f"{module}\n{outer}\n".encode())
            self.save(inner)
            self.write(pickle.TUPLE + pickle.REDUCE)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)
        return None

    # The parent's table holds its own save_global, not ours.
    dispatch: dict = dict(TensorPickler.dispatch)  # type: ignore[misc]
    dispatch[type(save_global)] = save_global
    dispatch[type] = lambda self, obj: self.save_global(obj)


class PackageUnpickler(_FullUnpickler):
    """Finds classes and functions in the modules of a package."""

    def __init__(self, file, importer):
        super().__init__(file)
        self._importer = importer

    def persistent_load(self, saved_id):
        return self._importer._persistent_load(saved_id)

    def find_class(self, module, name):
        if module.partition(".")[0] == "torch":
            return super().find_class(module, name)
        found = self._importer.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found
