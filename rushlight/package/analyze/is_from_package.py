"""Whether something came out of a package."""

import types

from rushlight.package._mangling import is_mangled

__all__ = ["is_from_package"]


def is_from_package(obj):
    """Whether a module, or the class of an object, came out of a package."""
    return is_mangled(obj.__name__ if type(obj) is types.ModuleType else type(obj).__module__)
