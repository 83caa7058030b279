"""What a suite is made of: cases, each of which prepares something that is timed."""

import timeit
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

Function = Callable[[], object]
# Called without arguments; lambdas bind what they need as defaults.
Setup = Callable[..., Function | AbstractContextManager[Function]]


class Sizes(Protocol):
    """Picks the size that is measured or, for the tests, one that merely runs."""

    def __call__(self, measured: Any, tiny: Any) -> Any: ...


@dataclass(frozen=True)
class Case:
    """One row. `setup` gives the function to time, or a context manager around it.

    Cases with the same `process` share a pair of processes; each other name starts a new pair. `peak` makes
    the processes' peak memory after this case a row of the suite "memory".
    """

    name: str
    setup: Setup
    process: str = ""
    peak: bool = False

    def prepare(self, stack: ExitStack, clock: Callable[[], float]) -> timeit.Timer:
        prepared = self.setup()
        if isinstance(prepared, AbstractContextManager):
            prepared = stack.enter_context(prepared)
        return timeit.Timer(prepared, timer=clock)


@dataclass(frozen=True)
class Statement:
    """A row whose code is compiled into the timing loop: no call around it is timed."""

    name: str
    code: str
    names: Mapping[str, object]
    process: str = ""
    peak: bool = False

    def prepare(self, stack: ExitStack, clock: Callable[[], float]) -> timeit.Timer:
        return timeit.Timer(self.code, timer=clock, globals=dict(self.names))
