"""What belongs to the library, under both of its names: modules, classes, functions, frames and files.

Where the alias is on, modules and what they define say `torch` (see `alias`). Code that asks whether
something is the library's own asks here; a test refuses other comparisons with `rushlight` and `torch`.
"""

import os
import sys

import rushlight

__capture__ = "skip"  # Note [Capture marks]

PACKAGE = __package__.partition(".")[0]
_ALIAS = "torch"
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep


def is_aliased():
    """Whether the alias is on, so that modules say `torch`."""
    return rushlight.__name__ == _ALIAS


def public_name(module_name):
    """A module's name as PyTorch's users know it: ``torch.nn`` for ``rushlight.nn``; other names stay."""
    top, dot, rest = module_name.partition(".")
    return _ALIAS + dot + rest if top == PACKAGE else module_name


def own_name(module_name):
    """A module's name under this package: ``rushlight.nn`` for ``torch.nn``; other names stay."""
    top, dot, rest = module_name.partition(".")
    return PACKAGE + dot + rest if top == _ALIAS else module_name


def show_from(home, *values):
    """Let classes and functions name the module below the package that programs take them from, not the file
    that has their code: in pickles, which PyTorch reads, in what is printed, in documents."""
    for value in values:
        value.__module__ = f"{PACKAGE}.{home}" if home else PACKAGE


def show_public_from(home, namespace):
    """`show_from` for all that a file defines without a leading underscore."""
    for name, value in namespace.items():
        if not name.startswith("_") and getattr(value, "__module__", None) == namespace["__name__"]:
            value.__module__ = f"{PACKAGE}.{home}" if home else PACKAGE


def is_own(module_name, *below):
    """Whether a module of this name is the library's; with ``below``, lies in one of these: ``"nn"``.

    `torch` is ours unless PyTorch itself is loaded in this process."""
    if not isinstance(module_name, str):
        return False
    top, _, rest = module_name.partition(".")
    if top != PACKAGE and (top != _ALIAS or sys.modules.get(_ALIAS, rushlight) is not rushlight):
        return False
    return not below or any(rest == part or rest.startswith(part + ".") for part in below)


def is_own_file(path):
    """Whether a source file is the library's."""
    return path.startswith(_ROOT)


def path_in_package(path):
    """``nn/modules/linear.py`` for a file of the library."""
    return path[len(_ROOT) :].replace(os.sep, "/")


def is_own_frame(frame):
    """Whether a frame runs the library's code, and not the program's."""
    return frame.f_code.co_filename.startswith(_ROOT)


def is_program_frame(frame):
    """Whether a frame runs neither the library's nor the standard library's code."""
    name = frame.f_code.co_filename
    if name.startswith((_ROOT, "<frozen")):
        return False
    return not name.startswith(_STANDARD) or "site-packages" in name


def program_level(start=1):
    """What `stacklevel` a warning needs that the caller gives, so that it names the program's line."""
    frame, level = sys._getframe(start), 1
    while frame.f_back is not None and not is_program_frame(frame):
        frame, level = frame.f_back, level + 1
    return level
