"""Results of a sweep as one JSON file: a line for each operator."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import records

FORMAT = 1


@dataclass
class Operator:
    """Of each case the ratio and the two medians in microseconds; what was refused by Rushlight alone."""

    family: str = ""
    cases: dict[str, list[float]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    done: int = 0  # its every n-th case has been measured


@dataclass
class Results:
    threads: int = 1
    capability: str = ""
    step: int = 1  # every n-th case
    machine: dict[str, Any] = field(default_factory=records.machine)
    about: dict[str, Any] = field(default_factory=dict)
    operators: dict[str, Operator] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return records.Record(self.threads, False, self.capability).title

    def ratios(self) -> list[tuple[str, str, float]]:
        """Operator, case and ratio of all cases."""
        found = self.operators.items()
        return [(name, case, row[0]) for name, o in found for case, row in o.cases.items()]


def write(results: Results, path: Path) -> None:
    head = {name: getattr(results, name) for name in ("threads", "capability", "step", "machine", "about")}
    lines = [json.dumps({"format": FORMAT, **head})[:-1] + ', "operators": {']
    rows = [
        f"{json.dumps(name)}: {json.dumps(vars(operator))}" for name, operator in results.operators.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text("\n".join([*lines, ",\n".join(rows), "}}"]) + "\n")
    unfinished.replace(path)


def read(path: Path) -> Results:
    data = json.loads(path.read_text())
    if data.pop("format", None) != FORMAT:
        raise ValueError(f"{path}: has another format than {FORMAT}, which this program reads")
    data["operators"] = {name: Operator(**value) for name, value in data["operators"].items()}
    return Results(**data)


def read_all(folder: Path) -> list[Results]:
    return [read(path) for path in sorted(folder.glob("*.json"))] if folder.is_dir() else []
