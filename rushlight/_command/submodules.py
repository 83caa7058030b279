"""Submodules as attributes of their package before anybody imported them.

PyTorch imports most of its modules with itself, so programs say ``torch.fx.experimental.proxy_tensor`` after
``import torch`` alone. Here a module is imported when it is asked for first.
"""

from importlib import import_module

from rushlight._command.names import public_name


def submodule(package, name):
    """The submodule of that name.

    Raises:
        AttributeError: the package has none.
    """
    full = f"{package}.{name}"
    if not name.startswith("__"):
        try:
            return import_module(full)
        except ModuleNotFoundError as error:
            if error.name != full:
                raise
    raise AttributeError(f"module {public_name(package)!r} has no attribute {name!r}")


def submodules_of(package):
    """The ``__getattr__`` of a package that has nothing else to find late."""

    def __getattr__(name):
        return submodule(package, name)

    return __getattr__
