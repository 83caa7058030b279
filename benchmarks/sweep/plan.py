"""Which cases there are: those of all rows of tests/python/ops, the samples of the operators' records."""

import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..runner import ROOT
from .operands import OF_IMAGES, OF_SIZES, WAYS, Call, Operand, elements, enlarged, mapped, operands

sys.path.insert(0, str(ROOT / "tests" / "python" / "ops"))

DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "bool")
# Elements of the largest operand. What is cache-sized fits into a core's second-level cache.
SIZES = {"small": 0, "cache": 1 << 14, "large": 1 << 20}
LAYOUTS = ("transposed", "strided", "broadcast")
SAMPLES = 3  # of one row
RARE = ("float16", "int32", "bool")  # measured in one size
FURTHER = (("float32", "cache"), ("float32", "large"), ("bfloat16", "cache"), ("int64", "cache"))


@dataclass(frozen=True)
class Case:
    row: str
    sample: int
    dtype: str
    size: str
    layout: str = ""
    backward: bool = False

    @property
    def name(self) -> str:
        words = [
            self.dtype,
            self.layout or "contiguous",
            self.size,
            "backward" if self.backward else "forward",
        ]
        return " ".join(words + ([f"#{self.sample}"] if self.sample else []))


class Group:
    """A row: one operator, with the calls that its cases make."""

    def __init__(self, row: Any) -> None:
        import engine
        import loader

        self.row, self.engine = row, engine
        self.name: str = row.id
        self.family: str = row.family
        self.records = {record["schema"] for record in loader.records_of(row)}

    @cached_property
    def calls(self) -> list[Call]:
        """Calls whose operands have elements, of several forms."""
        make = self.engine.maker(self.row, "float64")
        found = [_call(self.row.name, sample) for sample in self.row.samples(make)]
        full = [call for call in found if all(o.values.size for o in operands(call))]
        full.sort(key=lambda call: elements(call) < 2)
        chosen = full or found[:1]
        step = max(1, len(chosen) // SAMPLES)
        return chosen[::step][:SAMPLES]

    def cases(self) -> Iterator[Case]:
        for sample in range(len(self.calls)):
            for dtype in self.dtypes:
                for size in SIZES:
                    yield from self._cases(sample, dtype, size)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """All of them where operands may have any; PyTorch refuses those that it does not take."""
        return DTYPES if any(elements(call) for call in self.calls) else ("float32",)

    def _cases(self, sample: int, dtype: str, size: str) -> Iterator[Case]:
        """All of a row's first call; of its others one in each dtype that is used most."""
        if sample and (size == "small" or (dtype, size) not in FURTHER):
            return
        if dtype in RARE and size != "cache" or dtype == "float64" and size == "small":
            return
        yield Case(self.name, sample, dtype, size)
        if dtype == "float32" or (dtype, size) in (("float64", "cache"), ("bfloat16", "cache")):
            if not sample or size == "cache" and dtype == "float32":
                yield Case(self.name, sample, dtype, size, backward=True)
        if sample or size == "small" or dtype not in ("float32", "bfloat16", "int64"):
            return
        if (dtype, size) == ("float32", "cache"):
            for layout in LAYOUTS:
                yield Case(self.name, sample, dtype, size, layout)
            yield Case(self.name, sample, dtype, size, "transposed", backward=True)
        else:  # the layouts in turn
            turn = zlib.crc32(f"{self.name} {dtype} {size}".encode()) % len(LAYOUTS)
            yield Case(self.name, sample, dtype, size, LAYOUTS[turn])

    def enlargements(self, sample: int, size: str) -> Iterator[tuple[str, Call]]:
        """A call of this size, made in each of the ways that apply."""
        call = self.calls[sample]
        if size == "small":
            yield "", call
            return
        seed = zlib.crc32(f"{self.name} {sample} {size}".encode())
        for way in OF_IMAGES if "conv" in self.name else OF_SIZES if "sample" in self.name else WAYS:
            larger = enlarged(call, way, SIZES[size], seed)
            if larger is not None:
                yield way, larger

    def resized(self, sample: int, way: str, count: int) -> Call | None:
        return enlarged(self.calls[sample], way, count, zlib.crc32(f"{self.name} {sample} {count}".encode()))


def groups() -> list[Group]:
    import loader

    return [Group(row) for row in loader.ROWS]


def kernels() -> set[str]:
    """The schemas of all records with a kernel."""
    import loader

    return {record["schema"] for record in loader.ALL_RECORDS if record["family"] != "composite"}


def _call(function: str, sample: Any) -> Call:
    from rows import Given, Sparse

    def change(value: Any) -> Any:
        if isinstance(value, Sparse):
            return Operand(np.asarray(value.values), layout=value.layout, blocks=value.args)
        if isinstance(value, np.ndarray):
            return Operand(np.asarray(value), learned=not isinstance(value, Given))
        return value

    return mapped(Call(function, tuple(sample.args), dict(sample.kwargs)), change)
