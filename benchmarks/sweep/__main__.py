"""Measure every operator by dtype, layout and size, forward and backward, beside PyTorch (above 1: ahead)."""

import argparse
import math
import pickle
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import records
from ..runner import LIMITS, ROOT, Plan, Worker, WorkerError
from ..stats import geometric_mean
from . import results as files
from .operands import Call
from .plan import SIZES, Case, Group, groups
from .results import Operator, Results
from .worker import clock_for

ROUNDS, MORE = 5, 6
SIDE = 5e-3  # seconds of one module's samples, after which a case gets no more than three
REST = 0.01  # seconds for which threads of the other module may spin on after their work
LONGEST = 0.012  # seconds of a call of PyTorch's: longer ones get fewer elements
DOUBTFUL = 1.05  # ratios below get further rounds


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description=__doc__)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every n-th case")
    parser.add_argument(
        "--first", type=int, default=0, metavar="K", help="with --every: another sample of cases"
    )
    parser.add_argument("--filter", default="", metavar="REGEX", help="operators or families that match")
    parser.add_argument("--cases", default="", metavar="REGEX", help="only cases that match")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--capability", choices=tuple(LIMITS), default="", help="limit both modules to an instruction set"
    )
    parser.add_argument(
        "--output", type=Path, help="JSON file; operators that it holds and --filter leaves out stay"
    )
    parser.add_argument("--record", action="store_true", help="write to benchmarks/recorded/sweep")
    parser.add_argument("--resume", action="store_true", help="leave cases alone that the file already holds")
    parser.add_argument(
        "--again", type=float, metavar="RATIO", help="only cases that the file holds below this ratio"
    )
    parser.add_argument("--show", type=float, default=0.8, help="print the cases below this ratio")
    options = parser.parse_args(arguments)
    folder = records.FOLDER / "sweep" if options.record else ROOT / "build" / "benchmarks" / "sweep"
    path = options.output or records.default_path(folder, options.threads, False, options.capability)
    kept = options.resume or options.filter or options.again is not None
    results = files.read(path) if path.exists() and kept else Results()
    results.threads, results.capability = options.threads, options.capability
    if options.again is None:
        results.step = options.every
    sweep = Sweep(results, options)
    start = time.monotonic()
    try:
        for group in groups():
            chosen = re.search(options.filter, group.name) or re.fullmatch(options.filter, group.family)
            if not chosen:
                sweep.skip(group)
                continue
            if not options.resume and options.again is None:
                results.operators.pop(group.name, None)
            if sweep.measure(group):
                files.write(results, path)
    finally:
        sweep.close()
        files.write(results, path)
    print(f"{summary(results)}; {time.monotonic() - start:.0f} s\nwritten to {path}")
    return 0


def summary(results: Results) -> str:
    ratios = [ratio for _, _, ratio in results.ratios()]
    if not ratios:
        return "no cases"
    below = [sum(ratio < limit for ratio in ratios) for limit in (0.95, 0.8)]
    mean = geometric_mean(ratios)
    return f"{len(ratios)} cases, geometric mean {mean:.2f}, {below[0]} below 0.95, {below[1]} below 0.8"


class Sweep:
    """The pair of processes, and the results so far."""

    def __init__(self, results: Results, options: argparse.Namespace) -> None:
        self.results, self.options = results, options
        clock = clock_for(results.threads)
        self.plan = Plan(results.threads, capability=results.capability, clock=clock, timeout=30.0)
        self.workers = {module: self._start(module) for module in self.plan.modules}
        versions = {module: worker.ask("version")["version"] for module, worker in self.workers.items()}
        results.about |= {"date": records.now(), "versions": versions, "clock": clock}
        self.folder = tempfile.TemporaryDirectory()
        self.index = self.files = 0

    def _start(self, module: str) -> Worker:
        program = ("benchmarks.sweep.worker", module, str(self.plan.threads))
        return Worker(module, program, self.plan)

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()
        self.folder.cleanup()

    def skip(self, group: Group) -> None:
        """Count the cases, so that every n-th one is the same whatever is left out."""
        self.index += sum(1 for _ in group.cases())

    def measure(self, group: Group) -> bool:
        """All cases of a group that are wanted; whether there were any."""
        operator = self.results.operators.setdefault(group.name, Operator())
        if self.options.again is None and operator.done in (1, self.options.every):
            self.skip(group)
            return False
        operator.family = group.family
        for case in self._wanted(group, operator):
            call = self._fitting(group, case)
            if call is None:
                continue
            try:
                row = self._measured(call, case)
            except Refused as refusal:
                operator.refused[case.name] = str(refusal)
                print(f"  {group.name:40} {case.name:40} refused: {refusal}", flush=True)
                continue
            if row:
                operator.cases[case.name] = [float(f"{value:.3g}") for value in row]
                if row[0] < self.options.show:
                    print(f"  {group.name:40} {case.name:40} {row[0]:6.2f} {row[1]:10.1f} us", flush=True)
        if not self.options.cases and self.options.again is None:
            operator.done = self.options.every
        return True

    def _wanted(self, group: Group, operator: Operator) -> Iterator[Case]:
        self.fits: dict[tuple[int, str, str], str | None] = {}
        for case in group.cases():
            self.index += 1
            if re.search(self.options.cases, case.name) and self._due(operator, case.name):
                yield case

    def _due(self, operator: Operator, name: str) -> bool:
        if self.options.again is not None:
            return name in operator.cases and operator.cases[name][0] < self.options.again
        known = name in operator.cases or name in operator.refused
        return not known and self.index % self.options.every == self.options.first % self.options.every

    # --- a call of the wanted size ---------------------------------------------------------------------

    def _fitting(self, group: Group, case: Case) -> str | None:
        """The file of a call that PyTorch takes, and that takes it no longer than LONGEST."""
        key = (case.sample, case.dtype, case.size)
        if key not in self.fits:
            self.fits[key] = self._fit(group, case)
        return self.fits[key]

    def _fit(self, group: Group, case: Case) -> str | None:
        if case.size == "large":
            return self._fit_large(group, case)
        for way, call in group.enlargements(case.sample, case.size):
            path, seconds = self._tried(call, case)
            if seconds < 3 * LONGEST:
                self.way, self.seconds = way, seconds
                self.fitted = (case.sample, case.dtype)
                return path
        return None

    def _fit_large(self, group: Group, case: Case) -> str | None:
        """In the way that the cache-sized call was made, with as many elements as its time allows."""
        if getattr(self, "fitted", None) != (case.sample, case.dtype) or not self.way:
            smaller = Case(case.row, case.sample, case.dtype, "cache")
            if self._fitting(group, smaller) is None or not getattr(self, "way", ""):
                return None
        growth = SIZES["large"] / SIZES["cache"]
        expected = self.seconds * growth**1.3
        share = min(1.0, LONGEST / expected) ** (1 / 1.3)
        if share * growth < 3:
            return None
        call = group.resized(case.sample, self.way, int(SIZES["large"] * share))
        if call is None:
            return None
        path, seconds = self._tried(call, case)
        return path if seconds < math.inf else None

    def _tried(self, call: Call, case: Case) -> tuple[str, float]:
        """The file of a call, and the seconds that it takes PyTorch; infinite if that refuses."""
        path = self._saved(call)
        answer = self._ask("torch", "prepare", path, case.dtype, "", False)
        return path, answer.get("seconds", math.inf)

    def _saved(self, call: Call) -> str:
        folder = Path(self.folder.name)
        for other in folder.glob("*.pickle"):
            if str(other) not in self.fits.values():
                other.unlink()
        self.files += 1
        path = folder / f"{self.files}.pickle"
        path.write_bytes(pickle.dumps(call))
        return str(path)

    # --- two modules in turn -----------------------------------------------------------------------------

    def _ask(self, module: str, *command: Any) -> dict[str, Any]:
        """A worker that dies is replaced."""
        try:
            return self.workers[module].ask(*command)
        except WorkerError as error:
            text = str(error)
            if not text.endswith("s"):
                self.workers[module].process.kill()
            self.workers[module].close()
            self.workers[module] = self._start(module)
            return {"died": text}

    def _measured(self, path: str, case: Case) -> list[float] | None:
        ours, peer = (m for m in self.plan.modules)
        longest = 0.0
        for module in (peer, ours):
            answer = self._ask(module, "prepare", path, case.dtype, case.layout, case.backward)
            if "seconds" not in answer:
                if module == ours and "without" not in answer:
                    raise Refused(answer.get("refused") or answer.get("died"))
                return None
            longest = max(longest, answer["seconds"])
        samples: dict[str, list[float]] = {ours: [], peer: []}
        self._alternate(samples, ROUNDS if longest < SIDE else 3)
        ratio = _ratio(samples[ours], samples[peer])
        for _ in range(2):
            if ratio < DOUBTFUL:  # once more, with operands that lie elsewhere: their place is luck
                for module in (peer, ours):
                    self._ask(module, "prepare", path, case.dtype, case.layout, case.backward)
                self._alternate(samples, MORE if longest < SIDE else 2)
                ratio = _ratio(samples[ours], samples[peer])
        return [ratio, statistics.median(samples[ours]) * 1e6, statistics.median(samples[peer]) * 1e6]

    def _alternate(self, samples: dict[str, list[float]], rounds: int) -> None:
        for number in range(rounds):
            order = list(samples) if number % 2 else list(samples)[::-1]
            for module in order:
                if self.plan.threads > 1:
                    time.sleep(REST)
                answer = self._ask(module, "sample")
                if "seconds" not in answer:
                    raise Refused(answer.get("refused") or answer.get("died"))
                samples[module].append(answer["seconds"])


class Refused(Exception):
    """Rushlight raised an error or died where PyTorch computed."""


def _ratio(ours: list[float], peer: list[float]) -> float:
    return statistics.median(theirs / max(own, 1e-9) for own, theirs in zip(ours, peer))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
