"""`PackageExporter`: writes objects and the code that they need to one file."""

import enum
import io
import linecache
import os
import pickletools
import platform
import sys
from collections import OrderedDict
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from rushlight._command.names import PACKAGE, own_name
from rushlight._serialization.zip_records import RecordWriter, write_atomically, write_to_stream
from rushlight.package._digraph import DiGraph
from rushlight.package._mangling import demangle, is_mangled
from rushlight.package._package_pickler import PackagePickler
from rushlight.package.find_file_dependencies import find_files_source_depends_on
from rushlight.package.glob_group import GlobGroup
from rushlight.package.importer import Importer, OrderedImporter, sys_importer
from rushlight.serialization import _Saver
from rushlight.utils.hooks import RemovableHandle

__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError", "PackagingErrorReason"]

_MOCKED_MODULE = """from _mock import MockedObject


def __getattr__(attr: str):
    return MockedObject(__name__ + "." + attr, _suppress_err=True)
"""
_VERSION = b"6\n"


class _Action(enum.Enum):
    """What becomes of a module."""

    INTERN = 1
    EXTERN = 2
    MOCK = 3
    DENY = 4
    REPACKAGED_MOCK_MODULE = 5


class PackagingErrorReason(enum.Enum):
    """Why a module cannot be packaged."""

    IS_EXTENSION_MODULE = "Module is a C extension module. torch.package supports Python modules only."
    NO_DUNDER_FILE = "Module had no __file__ defined."
    SOURCE_FILE_NOT_FOUND = "Module had a __file__, but we could not find it in your filesystem."
    DEPENDENCY_RESOLUTION_FAILED = "Dependency resolution failed."
    NO_ACTION = "Module did not match against any action pattern. Extern, mock, or intern it."
    DENIED = "Module was denied by a pattern."
    MOCKED_BUT_STILL_USED = (
        "Module was mocked out, but is still being used in the package. "
        "Please intern or extern the mocked modules if objects are supposed to be in the package."
    )

    def __str__(self):
        return self.value


class EmptyMatchError(Exception):
    """A pattern that had to match some module matched none."""


class PackagingError(Exception):
    """Modules that cannot be packaged, each with the reason; `dependency_graph` says who needs them."""

    def __init__(self, dependency_graph, debug=False):
        self.dependency_graph = dependency_graph
        by_reason: dict = {}
        for name, node in dependency_graph.nodes.items():
            if node.get("error") is not None:
                by_reason.setdefault(node["error"], []).append((name, node.get("error_context")))
        lines = [""]
        for reason, modules in by_reason.items():
            lines.append(f"* {reason}")
            for name, context in modules:
                lines.append(f"    {name}")
                lines += [f"      Context: {context}"] if context is not None else []
                if debug:
                    lines.append("      A path to it: " + " -> ".join(dependency_graph.first_path(name)))
        if not debug:
            lines += [
                "",
                "Set debug=True when invoking PackageExporter for a visualization of where broken modules "
                "are coming from!",
            ]
        super().__init__("\n".join(lines) + "\n")


class PackageExporter:
    """Writes a package; use it in a ``with`` statement, at whose end the file appears.

    Each module that saved code or objects need must match a pattern of `intern`, `extern`, `mock` or `deny`,
    the first one counts. Modules of Python and `torch` are extern by themselves.

    Args:
        f: a path, or a binary file to write to.
        importer (Importer or sequence of them): where modules come from; `PackageImporter` objects that
            something was loaded from go before ``sys_importer``.
        debug (bool): say in errors how a module came to be needed.

    Example:
        >>> buffer = io.BytesIO()
        >>> with torch.package.PackageExporter(buffer) as exporter:
        ...     exporter.save_source_string("numbers_of_mine", "one = 1")
        ...     exporter.save_pickle("model", "weights.pkl", {"w": torch.ones(2)})
    """

    def __init__(self, f, importer=sys_importer, debug=False):
        self.debug = debug
        self._target, self._records = f, {}
        self.importer = importer if isinstance(importer, Importer) else OrderedImporter(*importer)
        self.dependency_graph, self.patterns = DiGraph(), {}
        self._hooks: dict = {action: OrderedDict() for action in _Action}
        self._saver, self._ids = _Saver(False), iter(range(1 << 62))
        self._numbers: dict = {}
        self._scripts: dict = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:  # an error of the block says more than what is missing because of it
            self.close()

    # --- what becomes of modules

    def _add_pattern(self, action, include, exclude, allow_empty=True):
        self.patterns[GlobGroup(include, exclude=exclude)] = [action, allow_empty, False]

    def intern(self, include, *, exclude=(), allow_empty=True):
        """Put the source of these modules into the package. Patterns are those of `GlobGroup`.

        Args:
            allow_empty (bool): False to have an error where no module matches."""
        self._add_pattern(_Action.INTERN, include, exclude, allow_empty)

    def extern(self, include, *, exclude=(), allow_empty=True):
        """Let these modules come from the reader's environment."""
        self._add_pattern(_Action.EXTERN, include, exclude, allow_empty)

    def mock(self, include, *, exclude=(), allow_empty=True):
        """Put something in place of these modules that raises when it is used."""
        self._add_pattern(_Action.MOCK, include, exclude, allow_empty)

    def deny(self, include, *, exclude=()):
        """Refuse to make a package that needs these modules."""
        self._add_pattern(_Action.DENY, include, exclude)

    def register_extern_hook(self, hook):
        """Call ``hook(exporter, name)`` for each module that is extern. The handle's `remove` ends that."""
        return self._register(_Action.EXTERN, hook)

    def register_mock_hook(self, hook):
        """Call ``hook(exporter, name)`` for each module that is mocked."""
        return self._register(_Action.MOCK, hook)

    def register_intern_hook(self, hook):
        """Call ``hook(exporter, name)`` for each module that is interned."""
        return self._register(_Action.INTERN, hook)

    def _register(self, action, hook):
        handle = RemovableHandle(self._hooks[action])
        self._hooks[action][handle.id] = hook
        return handle

    # --- what goes in

    def save_source_file(self, module_name, file_or_directory, dependencies=True):
        """Put a source file, or all of a folder, into the package under a module's name."""
        path = Path(file_or_directory)
        files = sorted(path.glob("**/*.py")) if path.is_dir() else [path]
        for file in files:
            parts = [module_name]
            if path.is_dir():
                below = file.relative_to(path)
                parts += [*below.parts[:-1], *([] if below.stem == "__init__" else [below.stem])]
            text = file.read_text(encoding="utf-8")
            self.save_source_string(".".join(parts), text, file.name == "__init__.py", dependencies)

    def save_source_string(self, module_name, src, is_package=False, dependencies=True):
        """Put a source into the package under a module's name, and what it imports as patterns say."""
        self.dependency_graph.add_node(
            module_name, source=src, is_package=is_package, provided=True, action=_Action.INTERN
        )
        if dependencies:
            self._add_imports(module_name, src, is_package)

    def save_module(self, module_name, dependencies=True):
        """Put a module into the package, and what it imports as patterns say."""
        if not isinstance(module_name, str):
            raise TypeError("save_module() expects a string input, did you perhaps mean to pass `__name__`?")
        self._intern(module_name, dependencies)

    def save_pickle(self, package, resource, obj, dependencies=True, pickle_protocol=3):
        """Pickle an object into the package, and put the code of its classes in as patterns say.

        Args:
            package, resource (str): by which `PackageImporter.load_pickle` finds it.
        """
        if pickle_protocol not in (3, 4):
            raise ValueError(f"save_pickle: only protocols 3 and 4 are supported, got {pickle_protocol}")
        buffer = io.BytesIO()
        PackagePickler(buffer, pickle_protocol, self).dump(obj)
        filename = self._filename(package, resource)
        node = f"<{package}.{resource}>"
        self.dependency_graph.add_node(node, action=_Action.INTERN, provided=True, is_pickle=True)
        if dependencies:
            for module, name in _pickled_names(buffer.getvalue()):
                if self._first_action(module) is _Action.MOCK and not _comes_by_itself(module):
                    self.dependency_graph.add_node(
                        node,
                        error=PackagingErrorReason.MOCKED_BUT_STILL_USED,
                        error_context=f"Object '{name}' from module {module} was mocked out during packaging "
                        f"but is being used in resource - {resource} in package {package}.",
                    )
                self.dependency_graph.add_edge(node, module)
                self.add_dependency(module)
        self._write(filename, buffer.getvalue())

    def save_text(self, package, resource, text):
        """Put a text into the package."""
        self.save_binary(package, resource, text.encode("utf-8"))

    def save_binary(self, package, resource, binary):
        """Put bytes into the package."""
        self._write(self._filename(package, resource), binary)

    def get_unique_id(self):
        """A text that nothing else in this package has as its number."""
        return str(next(self._ids))

    def _save_script(self, module, content):
        """Write what a script consists of, once for each; returns its number. Others share its tensors."""
        known = self._scripts.get(id(module))
        if known is None:
            known = self._scripts[id(module)] = str(len(self._scripts)), module
            buffer = io.BytesIO()
            PackagePickler(buffer, 3, self).dump(content())
            for name, _ in _pickled_names(buffer.getvalue()):
                self.add_dependency(name)
            self._write(f".data/ts_code/{known[0]}", buffer.getvalue())
        return known[0]

    def _number_of(self, obj):
        """A number for an object, the same for all its occurrences."""
        known = self._numbers.get(id(obj))
        if known is None:
            known = self._numbers[id(obj)] = len(self._numbers), obj
        return known[0]

    @staticmethod
    def _filename(package, resource):
        return f"{demangle(package).replace('.', '/')}/{resource}"

    def _write(self, name, content):
        if name in self._records and not name.startswith(".data/"):
            raise AssertionError(f"Tried to write file '{name}', but it already exists in this archive.")
        self._records[name] = content

    # --- following imports

    def add_dependency(self, module_name, dependencies=True):
        """Do with a module what the first pattern says that matches its name."""
        module_name = demangle(module_name)
        graph = self.dependency_graph
        if graph.nodes.get(module_name, {}).get("provided"):
            return
        if module_name == "_mock":
            graph.add_node(module_name, action=_Action.REPACKAGED_MOCK_MODULE, provided=True)
            return
        if _comes_by_itself(module_name):
            graph.add_node(module_name, action=_Action.EXTERN, provided=True)
            return
        action = self._first_action(module_name, use=True)
        if action is _Action.INTERN:
            self._intern(module_name, dependencies)
        elif action is None:
            graph.add_node(module_name, action=None, error=PackagingErrorReason.NO_ACTION)
        else:
            error = PackagingErrorReason.DENIED if action is _Action.DENY else None
            graph.add_node(module_name, action=action, provided=True, error=error)

    def _first_action(self, module_name, use=False):
        for pattern, entry in self.patterns.items():
            if pattern.matches(module_name):
                entry[2] = entry[2] or use
                return entry[0]
        return None

    def _intern(self, module_name, dependencies):
        module = self.importer.import_module(module_name)
        module_name = demangle(module_name)
        is_package = hasattr(module, "__path__")
        self.dependency_graph.add_node(
            module_name, action=_Action.INTERN, is_package=is_package, provided=True
        )
        source, error, context = _source_of(module, is_package)
        self.dependency_graph.add_node(module_name, source=source, error=error, error_context=context)
        if error is None and dependencies:
            self._add_imports(module_name, source, is_package)

    def _add_imports(self, module_name, source, is_package):
        package = module_name if is_package else module_name.rpartition(".")[0]
        try:
            imports = find_files_source_depends_on(source, package)
        except Exception as error:
            self.dependency_graph.add_node(
                module_name,
                error=PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED,
                error_context=str(error),
            )
            return
        for module, name in imports:
            # `from a import b` needs the module a.b where there is one.
            for wanted in ([f"{module}.{name}"] if name is not None else []) + [module]:
                if self._exists(wanted):
                    self.dependency_graph.add_edge(module_name, wanted)
                    self.add_dependency(wanted)
                    break

    def _exists(self, module_name):
        if module_name in self.dependency_graph and self.dependency_graph.nodes[module_name].get("provided"):
            return True
        try:
            return _is_module(self.importer.import_module(module_name))
        except Exception:
            # A pattern may know a module that cannot be imported here: the program said so.
            return False

    # --- questions

    def _modules(self, action):
        return sorted(
            name
            for name, node in self.dependency_graph.nodes.items()
            if node.get("action") is action and not node.get("is_pickle")
        )

    def interned_modules(self):
        """Names of the modules whose source goes in."""
        return self._modules(_Action.INTERN)

    def externed_modules(self):
        """Names of the modules that the reader must have."""
        return self._modules(_Action.EXTERN)

    def mocked_modules(self):
        """Names of the modules that are mocked."""
        return self._modules(_Action.MOCK)

    def denied_modules(self):
        """Names of the modules that are refused."""
        return self._modules(_Action.DENY)

    def get_rdeps(self, module_name):
        """Names of what needs a module."""
        if module_name not in self.dependency_graph:
            return []
        return list(self.dependency_graph.predecessors(module_name))

    def all_paths(self, src, dst):
        """How one module comes to need another one, as a graph in the language of Graphviz."""
        return self.dependency_graph.all_paths(src, dst)

    def dependency_graph_string(self):
        """Who needs whom, as a graph in the language of Graphviz."""
        return self.dependency_graph.to_dot()

    # --- the end

    def close(self):
        """Check that all that is needed is there, and write the file."""
        self._check()
        graph, extern = self.dependency_graph, []
        for name in list(graph):
            node = graph.nodes[name]
            action = node.get("action")
            if action is None or node.get("is_pickle"):
                continue
            for hook in self._hooks[action].values():
                hook(self, name)
            if action is _Action.EXTERN:
                extern.append(name)
            elif action is _Action.MOCK:
                self._write_mock_support()
                self._write_source(name, _MOCKED_MODULE, False)
            elif action is _Action.REPACKAGED_MOCK_MODULE:
                self._write_mock_support()
            else:
                self._write_source(name, node["source"], node["is_package"])
        self._write(".data/extern_modules", "".join(f"{name}\n" for name in extern).encode())
        self._write(".data/python_version", platform.python_version().encode())
        self._write_out()

    def _check(self):
        nodes = self.dependency_graph.nodes
        if any(node.get("error") is not None for node in nodes.values()):
            raise PackagingError(self.dependency_graph, self.debug)
        for pattern, (action, allow_empty, used) in self.patterns.items():
            if not allow_empty and not used:
                raise EmptyMatchError(
                    f"Exporter did not match any modules to {pattern}, which was marked as "
                    f"allow_empty=False in {action.name.lower()}"
                )

    def _write_mock_support(self):
        if "_mock.py" not in self._records:
            self._write("_mock.py", Path(__file__).with_name("_mock.py").read_bytes())

    def _write_source(self, name, source, is_package):
        path = name.replace(".", "/")
        self._write(f"{path}/__init__.py" if is_package else f"{path}.py", source.encode("utf-8"))

    def _write_out(self):
        from hashlib import sha256

        target = self._target

        def write(file, folder):
            writer, digest = RecordWriter(file, folder), sha256()
            for key, (content, _) in enumerate(self._saver.contents()):
                digest.update(content[:4096])
                writer.write(f".data/{key}.storage", content)
            for name, content in self._records.items():
                digest.update(name.encode() + content[:4096])
                writer.write(name, content)
            writer.write(".data/version", _VERSION)
            writer.write("byteorder", sys.byteorder.encode())
            number = int.from_bytes(digest.digest()[:16], "big")
            writer.write(".data/serialization_id", str(number).zfill(40).encode())
            writer.close()

        if isinstance(target, (str, os.PathLike)):
            path = os.fsdecode(target)
            stem = os.path.splitext(os.path.basename(path))[0]
            write_atomically(path, lambda file: write(file, stem or "archive"))
        else:
            write_to_stream(target, lambda file: write(file, "archive"))


_IMPORTER = "torch_package_importer"  # what packaged code imports to read its package


def _comes_by_itself(module_name):
    """Whether every reader has a module: Python's own, and `torch`."""
    top = module_name.partition(".")[0]
    return own_name(top) == PACKAGE or top == _IMPORTER or top in sys.stdlib_module_names


def _is_module(found):
    import types

    return isinstance(found, types.ModuleType) or hasattr(found, "import_module")


def _source_of(module, is_package):
    """(source, None, None) of a module, or None with the reason and what else is to be said."""
    reasons = PackagingErrorReason
    if is_mangled(module.__name__):
        return module.__loader__.get_source(module.__name__), None, None
    filename, loader = None, getattr(getattr(module, "__spec__", None), "loader", None)
    if isinstance(loader, SourceFileLoader):
        filename = loader.get_filename(module.__name__)  # a loader may look elsewhere than its finder
    filename = filename or getattr(module, "__file__", None)
    if filename is None:
        if is_package:
            return "", None, None  # a folder without __init__.py
        return None, reasons.NO_DUNDER_FILE, None
    if filename.endswith((".so", ".pyd", ".dylib")):
        return None, reasons.IS_EXTENSION_MODULE, None
    lines = linecache.getlines(filename, module.__dict__)
    if not lines and not (os.path.exists(filename) and os.path.getsize(filename) == 0):
        return None, reasons.SOURCE_FILE_NOT_FOUND, f"filename: {filename}"
    return "".join(lines), None, None


def _pickled_names(data):
    """(module, name) of all classes and functions that a pickle names, in order."""
    found, texts, memo = {}, [], {}
    argument: Any
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name == "GLOBAL":
            module, _, name = argument.partition(" ")
            found[module, name] = None
        elif opcode.name == "STACK_GLOBAL":
            found[texts[-2], texts[-1]] = None
        elif "UNICODE" in opcode.name:
            texts.append(argument)
        elif opcode.name == "MEMOIZE":
            memo[len(memo)] = texts[-1] if texts else None
        elif opcode.name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = texts[-1] if texts else None
        elif opcode.name in ("BINGET", "LONG_BINGET"):
            texts.append(memo.get(argument))
    return [pair for pair in found if isinstance(pair[0], str)]
