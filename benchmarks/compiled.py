"""How a suite of programs in two ways, compiled and as written, is measured.

Both modules compiled and ours as written take turns, the latter two in one process. Every pair of processes
shares a folder of compiled programs with the pairs before it: the first pair starts with an empty one.
"""

import os
import tempfile
from collections.abc import Callable
from typing import Any

from .records import Row

WAYS = ("compiled", "as written")


def measure(
    runner: Any, suite: str, cases: list[dict[str, Any]], done: Callable[[str, str, Row], None]
) -> None:
    """Rows of the cases of one process: what both modules compiled, that against as written, first calls."""
    plan = runner.plan
    programs = list(dict.fromkeys(case["name"].rpartition(", ")[0] for case in cases))
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(plan.pairs):
            kept = {"TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "compiled")}
            with runner.workers(suite, kept) as workers:
                for program in programs:
                    if any(row.error for name, row in rows.items() if name.startswith(f"{program}, ")):
                        continue
                    try:
                        _measure_program(plan, workers, program, pair > 0, rows)
                    except Exception as error:
                        rows[f"{program}, compiled"] = Row(error=str(error))
                        runner.revive(workers, suite, kept)
    for name, row in rows.items():
        done(suite, name, row)


def _measure_program(plan: Any, workers: list[Any], program: str, again: bool, rows: dict[str, Row]) -> None:
    turns = [(worker, WAYS[0]) for worker in workers] + [(workers[0], WAYS[1])]
    samples: list[list[float]] = [[] for _ in turns]
    first: list[list[float]] = []
    for worker, way in turns:
        answer = worker.ask("prepare", f"{program}, {way}", way != WAYS[0])
        if answer["first_call"] is not None:
            first.append([answer["first_call"]])
    order = list(range(len(turns)))
    for _ in range(-(-plan.rounds // plan.pairs)):
        for turn in order:
            worker, way = turns[turn]
            samples[turn].append(worker.ask("sample", plan.budget, f"{program}, {way}")["seconds"])
        order.reverse()
    for worker in workers:
        worker.ask("drop")
    compiled, written = samples[:-1], samples[-1]
    _add(rows, f"{program}, compiled", *[*compiled, []][:2])
    _add(rows, f"{program}, compiled against as written", compiled[0], written)
    _add(rows, f"{program}, {'first call, from files' if again else 'first call'}", *[*first, []][:2])


def _add(rows: dict[str, Row], name: str, ours: list[float], peer: list[float]) -> None:
    row = rows.setdefault(name, Row())
    row.ours += ours
    row.peer += peer
