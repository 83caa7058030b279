"""The stub package `torch-stubs`: what `torch` means to type checkers and editors, where the alias lasts.

They run nothing, so the alias's finder is not there for them. Each public module has a stub that hands on the
names of ours.
"""

import os
import shutil

FOLDER = "torch-stubs"
_HEAD = '"""Written by `python -m rushlight alias on`; `alias off` removes it."""\n\n'


def _public_modules(root, name=""):
    """(dotted name below the package, names of its public submodules or None) of each public module."""
    entries = sorted(os.scandir(os.path.join(root, *name.split("."))), key=lambda entry: entry.name)
    children = set()
    for entry in entries:
        child, extension = os.path.splitext(entry.name)
        if child.startswith("_") or not child.isidentifier():
            continue
        if entry.is_dir() and os.path.exists(os.path.join(entry.path, "__init__.py")):
            yield from _public_modules(root, f"{name}.{child}" if name else child)
        elif extension not in (".py", ".pyi"):
            continue
        elif child not in children:
            yield (f"{name}.{child}" if name else child), None
        children.add(child)
    yield name, sorted(children)


def texts():
    """The text of every stub, by its path below the stub package."""
    package = __package__.partition(".")[0]
    stubs = {}
    for name, children in _public_modules(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))):
        source = f"{package}.{name}" if name else package
        lines = [f"from {source} import *"]
        if not name:
            lines += [f"from {package} import _C as _C", f"from {package} import __version__ as __version__"]
        lines += [f"from {source} import {child} as {child}" for child in children or ()]
        path = name.replace(".", "/")
        path = f"{path}.pyi" if children is None else f"{path}/__init__.pyi".lstrip("/")
        stubs[path] = _HEAD + "\n".join(lines) + "\n"
    return stubs


def write(site_packages):
    """Write the stub package, in place of an older one of ours. Where another one is, nothing is done."""
    folder = os.path.join(site_packages, FOLDER)
    if os.path.exists(folder) and not remove(site_packages):
        return None
    for path, text in texts().items():
        file = os.path.join(folder, path)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
    return folder


def _is_ours(folder):
    try:
        with open(os.path.join(folder, "__init__.pyi"), encoding="utf-8") as file:
            return file.read().startswith(_HEAD)
    except FileNotFoundError:
        return False


def files(site_packages):
    """Paths of the stubs, if the stub package is ours."""
    folder = os.path.join(site_packages, FOLDER)
    if not _is_ours(folder):
        return []
    return [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names]


def remove(site_packages):
    """Remove the stub package if it is ours; whether it was."""
    folder = os.path.join(site_packages, FOLDER)
    if not _is_ours(folder):
        return False
    shutil.rmtree(folder)
    return True
