"""Where a value of a program comes from, by the names that guards give it."""

from dataclasses import dataclass

__all__ = ["ConstantSource", "LocalSource", "Source"]


@dataclass(frozen=True)
class Source:
    """A place that has a name."""

    @property
    def name(self):
        raise NotImplementedError(f"{type(self).__name__} has no name")


@dataclass(frozen=True)
class ConstantSource(Source):
    """A value that the program makes itself."""

    source_name: str

    @property
    def name(self):
        return self.source_name


@dataclass(frozen=True)
class LocalSource(Source):
    """An argument of the program."""

    local_name: str
    is_input: bool = False

    @property
    def name(self):
        return f"L[{self.local_name!r}]"
