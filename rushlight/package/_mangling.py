"""Names of modules that come from packages: a parent that no other module has, unlike for each package."""

import itertools
import re

_numbers = itertools.count()
_MANGLED = re.compile(r"<torch_package_\d+>")


class PackageMangler:
    """Puts a package's own parent before names."""

    def __init__(self):
        self._parent = f"<torch_package_{next(_numbers)}>"

    def mangle(self, name):
        if not name:
            raise AssertionError("mangle: the name is empty")
        return f"{self._parent}.{name}"

    def demangle(self, mangled):
        """The name without the parent, if it is this package's."""
        return mangled.removeprefix(self._parent + ".")

    def parent_name(self):
        return self._parent


def is_mangled(name):
    """Whether a name is of a module from a package."""
    return _MANGLED.match(name) is not None


def demangle(name):
    """The name without any package's parent."""
    return name.partition(".")[2] if is_mangled(name) else name


def get_mangle_prefix(name):
    """The parent of a name from a package; other names come back as they are."""
    return name.partition(".")[0] if is_mangled(name) else name
