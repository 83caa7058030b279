"""Results as files: one JSON file for a number of threads, merged suite by suite and row by row."""

import json
import os
import platform
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .stats import Ratio, paired_ratio

FOLDER = Path(__file__).parent / "recorded"
FORMAT = 1


@dataclass
class Row:
    """Samples of one row, in `unit` ("s" or "MB"; less is better). Round i gave ours[i] and peer[i]."""

    unit: str = "s"
    ours: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)
    error: str = ""

    @property
    def ratio(self) -> Ratio | None:
        return paired_ratio(self.ours, self.peer) if self.ours and self.peer and not self.error else None


@dataclass
class Suite:
    """Rows of one suite, and how they were measured."""

    rows: dict[str, Row] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)


@dataclass
class Record:
    threads: int
    busy: bool = False
    capability: str = ""  # the instruction set that both were limited to
    machine: dict[str, Any] = field(default_factory=lambda: machine())
    suites: dict[str, Suite] = field(default_factory=dict)

    @property
    def title(self) -> str:
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        limit = f", {self.capability.upper()}" if self.capability else ""
        return threads + limit + (", busy cores" if self.busy else "")

    def merge(self, other: "Record") -> None:
        """Take over the rows of another record. Rows that it lacks stay."""
        for name, suite in other.suites.items():
            mine = self.suites.setdefault(name, Suite())
            mine.rows.update(suite.rows)
            mine.about = suite.about
        self.machine = other.machine


def default_path(folder: Path, threads: int, busy: bool, capability: str = "") -> Path:
    limit = f"-{capability}" if capability else ""
    return folder / f"threads-{threads}{limit}{'-busy' if busy else ''}.json"


def machine() -> dict[str, Any]:
    """What a reader must know of the machine; its name is nobody's business."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    about = {
        "processor": _processor(),
        "cores": cores,
        "system": platform.system(),
        "python": platform.python_version(),
    }
    if hasattr(os, "sysconf"):
        about["memory_gb"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    return about


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def write(record: Record, path: Path) -> None:
    """One line a row, so that a difference between two records can be read."""
    head: dict[str, Any] = {"format": FORMAT, "threads": record.threads, "busy": record.busy}
    if record.capability:
        head["capability"] = record.capability
    head["machine"] = record.machine
    lines = [json.dumps(head)[:-1] + ', "suites": {']
    for index, (name, suite) in enumerate(record.suites.items()):
        lines.append(
            f'{"," if index else ""}{json.dumps(name)}: {{"about": {json.dumps(suite.about)}, "rows": {{'
        )
        rows = [f"{json.dumps(row)}: {json.dumps(_row_to_json(value))}" for row, value in suite.rows.items()]
        lines.append(",\n".join(rows) + "\n}}")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text("\n".join([*lines, "}}"]) + "\n")
    unfinished.replace(path)


def _row_to_json(row: Row) -> dict[str, Any]:
    samples = {name: [float(f"{value:.4g}") for value in getattr(row, name)] for name in ("ours", "peer")}
    fields = {"unit": row.unit, **samples, "error": row.error}
    return {name: value for name, value in fields.items() if value}


def read(path: Path) -> Record:
    data = json.loads(path.read_text())
    if data.get("format") != FORMAT:
        raise ValueError(f"{path}: has format {data.get('format')!r}, this program reads {FORMAT}")
    suites = {
        name: Suite({row: Row(**value) for row, value in suite["rows"].items()}, suite["about"])
        for name, suite in data["suites"].items()
    }
    return Record(data["threads"], data["busy"], data.get("capability", ""), data["machine"], suites)


def read_all(folder: Path = FOLDER) -> list[Record]:
    """The records of a folder: few threads first, quiet machines before busy ones, limited ones last."""
    found = [read(path) for path in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda record: (record.busy, record.capability, record.threads))
