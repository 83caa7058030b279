"""`PackageImporter`: modules and objects of a package."""

import builtins
import importlib
import importlib.machinery
import importlib.util
import inspect
import io
import linecache
import os
import types
import weakref
from typing import Any

from rushlight import UntypedStorage
from rushlight._serialization.file_records import PyTorchFileReader
from rushlight._serialization.format import as_saved, check_saved_id
from rushlight.package._directory_reader import DirectoryReader
from rushlight.package._mangling import PackageMangler, demangle
from rushlight.package._package_pickler import PackageUnpickler
from rushlight.package.file_structure_representation import _create_directory_from_file_list
from rushlight.package.importer import Importer, sys_importer
from rushlight.serialization import _restorer

__all__ = ["PackageImporter"]


class _Package:
    """A folder of a package: the source of its ``__init__.py``, if it has one, and what is below."""

    def __init__(self, source=None):
        self.source, self.children = source, {}


class _Module:
    def __init__(self, source):
        self.source = source


class _Extern:
    """A module that comes from outside, with all that is below it."""


_modules: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # of all packages, by mangled name
_getfile = inspect.getfile


def _getfile_of_packages(object):  # noqa: A002 - as in inspect
    """`inspect` looks for the modules of classes in ``sys.modules``, where those of packages are not."""
    if inspect.isclass(object):
        module = _modules.get(getattr(object, "__module__", None))
        if module is not None:
            return module.__file__
    return _getfile(object)


inspect.getfile = _getfile_of_packages


class PackageImporter(Importer):
    """Reads a package. Its modules are not those of ``sys.modules``: two packages never disturb each other.

    Args:
        file_or_buffer: a path, an unpacked folder, or an open binary file.
        module_allowed (callable): told the name of each module that comes from outside, says whether it may.

    Loading a package runs its code: load none that you do not trust.
    """

    def __init__(self, file_or_buffer, module_allowed=lambda module_name: True):
        self.zip_reader = _reader(file_or_buffer)
        self.filename = os.fspath(file_or_buffer) if _is_path(file_or_buffer) else "<binary>"
        self._mangler = PackageMangler()
        self.modules = {"torch_package_importer": self}
        self.root, self.extern_modules = _Package(), self._read_extern()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(
                    f"package '{self.filename}' needs the external module '{name}' but that module has been "
                    "disallowed"
                )
            self._add(name.split("."), _Extern())
        for path in self.zip_reader.get_all_records():
            self._add_file(path)
        self.patched_builtins = {**vars(builtins), "__import__": self.__import__}
        self.storage_context: dict = {}
        self._reduced: dict = {}
        self._restore: Any = None

    def __repr__(self):
        return f"PackageImporter({self.filename!r})"

    __str__ = __repr__

    # --- contents

    def _read_extern(self):
        text = self.zip_reader.get_record(".data/extern_modules").decode("utf-8")
        return [name for name in text.split("\n") if name]

    def _add(self, path, node):
        folder = self.root
        for name in path[:-1]:
            below = folder.children.setdefault(name, _Package())
            if isinstance(below, _Extern):
                return  # all of it comes from outside
            if isinstance(below, _Module):
                below = folder.children[name] = _Package(below.source)
            folder = below
        old = folder.children.get(path[-1])
        if isinstance(old, _Package) and isinstance(node, _Package):
            old.source = node.source or old.source
        elif not isinstance(old, _Package) or isinstance(node, _Extern):
            folder.children[path[-1]] = node

    def _add_file(self, path):
        *folders, file = path.split("/")
        if folders and folders[0] == ".data":
            return
        if file == "__init__.py" and folders:
            self._add(folders, _Package(path))
        elif file.endswith(".py"):
            self._add([*folders, file.removesuffix(".py")], _Module(path))
        elif folders:
            self._add(folders, _Package())

    def _find(self, name):
        node: Any = self.root
        for part in name.split("."):
            if isinstance(node, _Extern):
                return node
            node = node.children.get(part) if isinstance(node, _Package) else None
        return node

    def file_structure(self, *, include="**", exclude=()):
        """The files as a `Directory`, which prints as a tree; patterns are those of `GlobGroup` with "/"."""
        return _create_directory_from_file_list(
            self.filename, self.zip_reader.get_all_records(), include, exclude
        )

    def python_version(self):
        """The version of Python that wrote the package; None if it does not say."""
        name = ".data/python_version"
        if not self.zip_reader.has_record(name):
            return None
        return self.zip_reader.get_record(name).decode("utf-8").strip()

    def id(self):
        """A text that no other importer of this process has."""
        return self._mangler.parent_name()

    # --- modules

    def import_module(self, name, package=None):
        """A module of the package, or of outside where the package says so."""
        if name.startswith("."):
            name = importlib.util.resolve_name(name, package)
        return self._load(self._mangler.demangle(name))

    def _load(self, name):
        if name in self.modules:
            return self.modules[name]
        node = self._find(name)
        if node is None:
            raise ModuleNotFoundError(
                f"No module named '{name}' in self-contained archive '{self.filename}' and the module is "
                f"also not in the list of allowed external modules: {self.extern_modules}",
                name=name,
            )
        parent, _, child = name.rpartition(".")
        owner = self._load(parent) if parent and not isinstance(self._find(parent), _Extern) else None
        if name not in self.modules:  # the parent may have imported it
            if isinstance(node, _Extern):
                self.modules[name] = sys_importer.import_module(name)
            else:
                self._run(name, node)
        if owner is not None:
            setattr(owner, child, self.modules[name])
        return self.modules[name]

    def _run(self, name, node):
        is_package, path = isinstance(node, _Package), node.source
        mangled = self._mangler.mangle(name)
        module = types.ModuleType(mangled)
        spec = importlib.machinery.ModuleSpec(name, self, origin="<package_importer>", is_package=is_package)  # type: ignore[arg-type]
        filename = self._mangler.mangle(path or f"{name.replace('.', '/')}/__init__.py")
        vars(module).update(
            __file__=filename,
            __loader__=self,
            __spec__=spec,
            __package__=mangled if is_package else mangled.rpartition(".")[0],
            __builtins__=self.patched_builtins,
            __torch_package__=True,
        )
        if is_package:
            module.__path__ = []
        self.modules[name] = module
        _modules[mangled] = module
        if path is None:
            return
        source = self.zip_reader.get_record(path).decode("utf-8")
        # Tracebacks and `inspect` ask the loader for the source.
        linecache.lazycache(filename, vars(module))
        try:
            exec(compile(source, filename, "exec", dont_inherit=True), vars(module))
        except BaseException:
            del self.modules[name]
            raise

    def __import__(self, name, globals=None, locals=None, fromlist=(), level=0):
        """What ``import`` calls in the package's modules."""
        if level:
            name = importlib.util.resolve_name("." * level + name, (globals or {}).get("__package__"))
        name = self._mangler.demangle(name)
        module = self._load(name)
        if not fromlist:
            return self._load(name.partition(".")[0])
        if hasattr(module, "__path__") or isinstance(self._find(name), _Extern):
            wanted = [n for n in fromlist if n != "*"]
            if "*" in fromlist:
                wanted += getattr(module, "__all__", ())
            for n in wanted:
                if not hasattr(module, n):
                    self._load_if_there(f"{name}.{n}")
        return module

    def _load_if_there(self, name):
        try:
            self._load(name)
        except ModuleNotFoundError as error:
            if demangle(error.name or "") != name:
                raise

    def get_source(self, module_name):
        """The source of a module; tracebacks and `inspect` ask for it."""
        node = self._find(demangle(module_name))
        path = getattr(node, "source", None)
        return "" if path is None else self.zip_reader.get_record(path).decode("utf-8")

    def whichmodule(self, obj, name):
        found = getattr(obj, "__module__", None)
        if found is not None:
            return found
        for module_name, module in list(self.modules.items()):
            if module_name in ("__main__", "torch_package_importer"):
                continue
            at = module
            for part in name.split("."):
                at = getattr(at, part, None)
            if at is obj:
                return module_name
        return sys_importer.whichmodule(obj, name)

    # --- objects and files

    def load_pickle(self, package, resource, map_location=None):
        """An object that `PackageExporter.save_pickle` wrote. `map_location` is that of `torch.load`."""
        before, self._restore = self._restore, _restorer(map_location)
        try:
            return self._unpickle(self.load_binary(package, resource))
        finally:
            self._restore = before
            if before is None:  # the outermost call: a later one reads anew, as it may go elsewhere
                self.storage_context, self._reduced = {}, {}

    def _unpickle(self, data):
        return PackageUnpickler(io.BytesIO(data), self).load()

    def _load_script(self, number):
        return self._unpickle(self.zip_reader.get_record(f".data/ts_code/{number}"))

    def _persistent_load(self, saved_id):
        kind = saved_id[0].decode() if isinstance(saved_id[0], bytes) else saved_id[0]
        if kind == "reduce_package":
            _, number, function, args = saved_id
            if number not in self._reduced:
                self._reduced[number] = function(self, *args)
            return self._reduced[number]
        if isinstance(saved_id[2], int):  # as PyTorch wrote them at first
            saved_id = (*saved_id[:2], str(saved_id[2]), *saved_id[3:])
        _, dtype, key, location, count = check_saved_id(saved_id, 5, self.filename)
        if key not in self.storage_context:
            nbytes = count * dtype.itemsize
            storage = (
                UntypedStorage(nbytes, device="meta")
                if location == "meta"
                else self._read_storage(f".data/{key}.storage", nbytes)
            )
            self.storage_context[key] = self._restore(storage, location)
        return as_saved(self.storage_context[key], saved_id[1], dtype)

    def _read_storage(self, name, nbytes):
        if isinstance(self.zip_reader, DirectoryReader):
            return self.zip_reader.read_storage(name, nbytes)
        return self.zip_reader._reader.read_storage(name, nbytes)

    def load_binary(self, package, resource):
        """Bytes that `PackageExporter.save_binary` wrote."""
        return self.zip_reader.get_record(f"{demangle(package).replace('.', '/')}/{resource}")

    def load_text(self, package, resource, encoding="utf-8", errors="strict"):
        """A text that `PackageExporter.save_text` wrote."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def get_resource_reader(self, fullname):
        """What `importlib.resources` reads a package's files by; None for what is no package."""
        name = demangle(fullname)
        return _ResourceReader(self, name) if isinstance(self._find(name), _Package) else None


class _ResourceReader:
    """Files of one package, as `importlib.resources` asks for them."""

    def __init__(self, importer, fullname):
        self.importer, self.fullname = importer, fullname
        self._folder = fullname.replace(".", "/") + "/"

    def open_resource(self, resource):
        return io.BytesIO(self.importer.load_binary(self.fullname, resource))

    def resource_path(self, resource):
        reader = self.importer.zip_reader
        if isinstance(reader, DirectoryReader) and reader.has_record(self._folder + resource):
            return os.path.join(reader.directory, self._folder + resource)
        raise FileNotFoundError(resource)  # there is no file of it, and importlib makes one

    def is_resource(self, name):
        return self.importer.zip_reader.has_record(self._folder + name)

    def contents(self):
        seen: dict = {}
        for path in self.importer.zip_reader.get_all_records():
            if path.startswith(self._folder):
                seen[path[len(self._folder) :].partition("/")[0]] = None
        return iter(sorted(seen))


def _is_path(file):
    return isinstance(file, (str, os.PathLike))


def _reader(file):
    if isinstance(file, PyTorchFileReader):
        return file
    if _is_path(file) and os.path.isdir(file):
        return DirectoryReader(os.fspath(file))
    return PyTorchFileReader(file)
