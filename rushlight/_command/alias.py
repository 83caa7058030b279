"""The name `torch`: makes `import torch` and `import torch.nn` give Rushlight's own modules.

Two parts work together. A meta-path finder maps every `torch.x` to the module object `rushlight.x`. The
folder `torch_path` holds a package `torch` that installs the finder on first import, and metadata for the
distribution `torch`; on PYTHONPATH it reaches child processes, in a .pth file it lasts for a virtual
environment. Interpreters that never import torch pay nothing.

Where the alias is on, classes and functions also name `torch` as their module, because programs look there:
`type(x).__module__` picks a backend, `module.__module__` tells torch.nn's layers from the user's.
"""

import functools
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types

ALIAS = "torch"
PACKAGE = __package__.partition(".")[0]
TORCH_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_path")
PTH_NAME = "rushlight-torch.pth"


class AliasError(Exception):
    """The alias can't be turned on here; the text says why and what to do."""


def _real_name(name):
    return PACKAGE + name[len(ALIAS) :]


class _AliasLoader:
    """Loads `torch.x` by importing `rushlight.x` and returning that very module."""

    def create_module(self, spec):
        module = importlib.import_module(_real_name(spec.name))
        self._spec = module.__spec__
        return module

    def exec_module(self, module):
        # The import system has just set the alias's spec on the shared module.
        module.__spec__ = self._spec

    def get_code(self, name):
        """For `python -m torch.x`."""
        return _find(_real_name(name)).loader.get_code(_real_name(name))

    def is_package(self, name):
        return _find(_real_name(name)).submodule_search_locations is not None


def _find(name):
    """The spec of a module of ours, also of one that exists only in sys.modules; None if there is none."""
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    except ValueError:
        return importlib.machinery.ModuleSpec(name, None)


class _AliasFinder:
    """A meta-path finder for `torch` and all below it."""

    def find_spec(self, name, path=None, target=None):
        if name != ALIAS and not name.startswith(ALIAS + "."):
            return None
        real = _find(_real_name(name))
        if real is None:
            return None
        spec = importlib.machinery.ModuleSpec(name, _AliasLoader(), origin=real.origin)
        spec.submodule_search_locations = real.submodule_search_locations
        spec.has_location = real.has_location
        return spec


class _Renaming:
    """Loads a module of ours and shows it under the alias's name, once it is whole: other threads that import
    it wait for our name's lock."""

    def exec_module(self, module):
        super().exec_module(module)
        _show_as_torch(sys.modules.get(self.name, module))


class _RenamingLoader(_Renaming, importlib.machinery.SourceFileLoader):  # type: ignore[misc]
    pass


class _RenamingExtensionLoader(_Renaming, importlib.machinery.ExtensionFileLoader):
    pass


_RENAMING = {base: cls for cls in (_RenamingLoader, _RenamingExtensionLoader) for base in cls.__bases__[1:]}


class _RenamingFinder:
    """A meta-path finder for what of `rushlight` is imported once the alias is on."""

    def find_spec(self, name, path=None, target=None):
        if not name.startswith(PACKAGE + "."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) in _RENAMING:
            spec.loader = _RENAMING[type(spec.loader)](name, spec.loader.path)
        return spec


def _show_as_torch(module):
    """Let what a module defines, and the module's entry in sys.modules, be found by PyTorch's name."""
    if _is_ours_by_name(module.__name__):
        name = _alias_name(module.__name__)
        if PACKAGE + name[len(ALIAS) :] in sys.modules:  # parts of the core are not there
            sys.modules.setdefault(name, module)
        module.__name__ = name
    seen: set = set()
    for value in list(vars(module).values()):
        if isinstance(value, types.ModuleType):
            if value.__spec__ is None and _is_ours_by_name(value.__name__):  # made by hand, with no loader
                _show_as_torch(value)
        else:
            _rename(value, seen)


_FUNCTIONS = types.FunctionType, types.BuiltinFunctionType, functools._lru_cache_wrapper
_NAMED = (type, staticmethod, classmethod, *_FUNCTIONS)


def _rename(value, seen):
    """Rename a function or a class, with its members, and what it wraps."""
    if isinstance(value, property):
        for function in (value.fget, value.fset, value.fdel):
            _rename(function, seen)
    if not isinstance(value, _NAMED) or id(value) in seen:
        return
    seen.add(id(value))
    if not _is_ours_by_name(getattr(value, "__module__", None)):
        return
    try:
        value.__module__ = _alias_name(value.__module__)
    except TypeError:
        pass  # a type of the core, which renames its own
    if isinstance(value, type):
        for member in list(vars(value).values()):
            _rename(member, seen)
    elif hasattr(value, "__wrapped__"):  # by functools.wraps, or in a staticmethod
        _rename(value.__wrapped__, seen)


def _is_ours_by_name(name):
    return isinstance(name, str) and (name == PACKAGE or name.startswith(PACKAGE + "."))


def _alias_name(name):
    return ALIAS + name[len(PACKAGE) :]


def is_installed():
    return any(isinstance(finder, _AliasFinder) for finder in sys.meta_path)


def install():
    """Turn the alias on in this process."""
    import rushlight

    loaded = sys.modules.get(ALIAS)
    if loaded not in (None, rushlight) and not _is_ours(getattr(loaded, "__spec__", None)):
        raise AliasError("PyTorch itself is already imported in this process; turn the alias on before that")
    sys.modules[ALIAS] = rushlight
    if is_installed():
        return
    sys.meta_path[:0] = [_AliasFinder(), _RenamingFinder()]
    rushlight._C._set_package_name(ALIAS)
    for name, module in list(sys.modules.items()):
        if isinstance(module, types.ModuleType) and name.partition(".")[0] == PACKAGE:
            _show_as_torch(module)


def install_for_children():
    """Turn the alias on here and in every process started from here, by fork or anew."""
    if TORCH_PATH not in sys.path:
        sys.path.insert(1, TORCH_PATH)
    inherited = os.environ.get("PYTHONPATH", "")
    if TORCH_PATH not in inherited.split(os.pathsep):
        os.environ["PYTHONPATH"] = TORCH_PATH + (os.pathsep + inherited if inherited else "")
    install()


def _is_ours(spec):
    return bool(spec and spec.origin and os.path.abspath(spec.origin).startswith(TORCH_PATH))


def find_pytorch():
    """Where PyTorch itself is installed, or None."""
    spec = importlib.machinery.PathFinder.find_spec(ALIAS, [path for path in sys.path if path != TORCH_PATH])
    if spec is None or _is_ours(spec):
        return None
    return os.path.dirname(spec.origin) if spec.origin else next(iter(spec.submodule_search_locations))


def _pth_file():
    import sysconfig

    return os.path.join(sysconfig.get_path("purelib"), PTH_NAME)


def turn_on():
    """Make the alias last for this virtual environment."""
    if sys.prefix == sys.base_prefix:
        raise AliasError(
            f"{sys.executable} is not in a virtual environment; make one (python -m venv .venv) "
            "and run its python, or use: python -m rushlight SCRIPT"
        )
    pytorch = find_pytorch()
    if pytorch:
        raise AliasError(
            f"PyTorch is installed in {pytorch}; uninstall it first, or use: python -m rushlight SCRIPT"
        )
    path = _pth_file()
    with open(path, "w", encoding="utf-8") as file:
        file.write(TORCH_PATH + "\n")
    from rushlight._command import alias_record, alias_stubs

    site_packages = os.path.dirname(path)
    alias_stubs.write(site_packages)
    alias_record.update(site_packages, [path, *alias_stubs.files(site_packages)])
    return path


def turn_off():
    """Undo turn_on; returns the removed file, or None if the alias was not on."""
    path = _pth_file()
    from rushlight._command import alias_record, alias_stubs

    alias_stubs.remove(os.path.dirname(path))
    alias_record.update(os.path.dirname(path), [])
    try:
        os.remove(path)
    except FileNotFoundError:
        return None
    return path


def status():
    """One line: what `import torch` means in this environment, outside `python -m rushlight`."""
    path = _pth_file()
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            target = file.read().strip()
        if os.path.isdir(target):
            return f"on: `import torch` gives Rushlight in {sys.prefix} ({path})"
        return f"broken: {path} names {target}, which is gone; run: python -m rushlight alias off"
    pytorch = find_pytorch()
    return f"off: `import torch` gives {'PyTorch in ' + pytorch if pytorch else 'an ImportError'}"
