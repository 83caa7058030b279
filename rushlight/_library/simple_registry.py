"""Which function gives an operator's shapes, and where it is, by the operator's name."""

import inspect
from dataclasses import dataclass, field

__all__ = ["Entry", "FakeImplHolder", "Kernel", "SimpleLibraryRegistry", "singleton"]


@dataclass
class Kernel:
    """A function of the program, and the file and line that define it."""

    func: object

    @property
    def source(self):
        code = getattr(inspect.unwrap(self.func), "__code__", None)  # type: ignore[arg-type]
        return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"

    def __call__(self, *args, **kwargs):
        return self.func(*args, **kwargs)  # type: ignore[operator]


@dataclass
class FakeImplHolder:
    kernel: Kernel | None = None


@dataclass
class Entry:
    """What is known of one operator."""

    qualname: str
    fake_impl: FakeImplHolder = field(default_factory=FakeImplHolder)


class SimpleLibraryRegistry:
    """Entries by ``"namespace::name"``; one that was not registered has none of its functions."""

    def __init__(self):
        self._data: dict[str, Entry] = {}

    def find(self, qualname):
        return self._data.setdefault(qualname, Entry(qualname))

    def note_fake(self, qualname, function):
        self.find(qualname).fake_impl.kernel = Kernel(function)

    def forget(self, qualname):
        self._data.pop(qualname, None)


singleton = SimpleLibraryRegistry()
