"""`torch.classes`: classes that libraries in C++ register. This build knows none."""

__path__: list = []  # programs walk over it as if it were a package
loaded_libraries: set = set()


def load_library(path):
    """Load a library that registers classes or operators."""
    import ctypes

    ctypes.CDLL(str(path))
    loaded_libraries.add(str(path))


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.classes' has no attribute {name!r}")
    return _Namespace(name)


class _Namespace:
    def __init__(self, name):
        self.name = name

    def __getattr__(self, name):
        raise RuntimeError(f"Class {self.name}.{name} not registered!")
