"""The paired runner: one process for each module, alive through a suite, which take turns at every row.

Round by round the order of the two changes (A B, B A, ...), so that a drift of the machine hits both alike. A
process that waits sleeps in a read; with more than one thread a pause lets its spinning threads come to rest.
"""

import importlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import compiled, peers, records
from .records import Row
from .stats import paired_ratio
from .suites import SUITES

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Plan:
    """How to measure. Rounds are added past `rounds` while a row's noise is above `noise`."""

    threads: int = 1
    modules: Sequence[str] = ("rushlight", "torch")  # ours, then the peer, if there is one
    pairs: int = 3  # of processes, one after another: memory layout is luck, and differs between them
    rounds: int = 15
    most_rounds: int = 30
    budget: float = 0.04  # seconds for a sample, if its calls are shorter
    noise: float = 0.02
    row_seconds: float = 60.0  # after which a row gets no more than `rounds`
    clock: str = "wall"
    busy: bool = False
    capability: str = ""  # a key of LIMITS
    tiny: bool = False
    timeout: float = 300.0


QUICK: dict[str, Any] = {
    "pairs": 1,
    "rounds": 5,
    "most_rounds": 9,
    "budget": 0.01,
    "noise": 0.04,
    "row_seconds": 6.0,
}


# What limits both modules, and the libraries that they call, to an instruction set.
LIMITS = {
    "baseline": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    },
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    },
    "avx512": {
        "ATEN_CPU_CAPABILITY": "avx512",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512",
    },
}


class WorkerError(Exception):
    """A row cannot be measured; the text says on which module and why."""


class Worker:
    """The runner's end of a benchmarks.worker process."""

    def __init__(
        self, module: str, program: Sequence[str], plan: Plan, more: dict[str, str] | None = None
    ) -> None:
        self.module, self.timeout = module, plan.timeout
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=environment(plan.threads, plan.capability) | (more or {}),
        )
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]

    def ask(self, *command: object) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError(f"{self.module}: {self._last_words()}") from None
        if not self.selector.select(self.timeout):
            self.process.kill()
            raise WorkerError(f"{self.module}: no answer within {self.timeout:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise WorkerError(f"{self.module}: {self._last_words()}")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(f"{self.module}: {answer['error']}")
        return answer

    def _last_words(self) -> str:
        status = self.process.wait()
        self.errors.seek(0)
        lines = [line for line in self.errors.read().splitlines() if line.strip()]
        return f"ended with status {status}: {lines[-1][:200] if lines else 'no message'}"

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.selector.close()
        try:
            self.process.stdin.close()
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


def environment(threads: int, capability: str = "") -> dict[str, str]:
    """Variables for a process that is measured; it starts from bytecode, as installed packages do."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(ROOT)]))
    count = str(threads)
    own = {"PYTHONPATH": path}
    own |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), count)
    if capability:
        own |= {"RUSHLIGHT_CPU_CAPABILITY": capability, **LIMITS[capability]}
    return {**os.environ, **own, "PYTHONDONTWRITEBYTECODE": ""}


def suite_worker(module: str, suite: str, plan: Plan, more: dict[str, str] | None = None) -> Worker:
    """A process that times the cases of a suite."""
    sizes = "tiny" if plan.tiny else "measured"
    clock = "wall" if SUITES[suite].many_processes else plan.clock
    return Worker(module, ["benchmarks.worker", module, suite, str(plan.threads), clock, sizes], plan, more)


class Runner:
    """Measures suites by a plan; `show` is told of every finished row."""

    def __init__(self, plan: Plan, show: Callable[[str, str, Row], None]) -> None:
        self.plan, self.show = plan, show
        self.versions: dict[str, str] = {}

    def run(
        self, suite: str, wanted: Callable[[str, str], bool], done: Callable[[str, str, Row], None]
    ) -> None:
        """Measure the rows of a suite for which `wanted(suite, row)` holds, and hand each to `done`."""

        def finish(suite: str, name: str, row: Row) -> None:
            done(suite, name, row)
            self.show(suite, name, row)

        with competitors(self.plan.busy):
            if SUITES[suite].sampled:
                self._run_sampled(suite, wanted, finish)
            elif SUITES[suite].peers and len(self.plan.modules) > 1:
                self._run_peers(suite, wanted, finish)
            else:
                self._run_timed(suite, wanted, finish)

    def _run_peers(self, suite: str, wanted: Callable, finish: Callable) -> None:
        """Suites that take the rows of one other library after the other; those not installed have none."""
        for name in filter(peers.installed, SUITES[suite].peers):
            title = peers.PEERS[name].title
            runner = Runner(replace(self.plan, modules=(self.plan.modules[0], name)), self.show)

            def chosen(suite: str, row: str, title: str = title) -> bool:
                return wanted(suite, f"{title}: {row}")

            def named(suite: str, row: str, value: Row, title: str = title, runner: Runner = runner) -> None:
                ours, peer = runner.versions.values()
                self.versions |= {self.plan.modules[0]: ours, title: peer}
                finish(suite, f"{title}: {row}", value)

            runner._run_timed(suite, chosen, named)

    def _run_sampled(self, suite: str, wanted: Callable, finish: Callable) -> None:
        """Suites of programs that are started anew for each sample."""
        sample = importlib.import_module(f"benchmarks.suites.{suite}").sample
        rows: dict[str, Row] = {}
        rounds = min(self.plan.rounds, SUITES[suite].most_rounds)
        for _ in range(rounds):
            for index, module in enumerate(self.plan.modules):
                for name, (value, unit) in sample(module, self.plan, ROOT).items():
                    row = rows.setdefault(name, Row(unit))
                    (row.peer if index else row.ours).append(value)
        for name, row in rows.items():
            if wanted(suite, name):
                finish(suite, name, row)

    def _run_timed(self, suite: str, wanted: Callable, finish: Callable) -> None:
        with self.workers(suite) as workers:
            answers = [worker.ask("list") for worker in workers]
            self.versions = {worker.module: answer["version"] for worker, answer in zip(workers, answers)}
            # Another library may have some of the rows only.
            cases = [case for case in answers[-1]["cases"] if wanted(suite, case["name"])]
            groups: dict[str, list[dict[str, Any]]] = {}
            for case in cases:
                groups.setdefault(case["process"], []).append(case)
            if list(groups) == [""] and self.plan.pairs == 1:
                self._run_group(workers, suite, groups.pop(""), finish)
        for group in groups.values():
            if SUITES[suite].compiled:
                compiled.measure(self, suite, group, finish)
            else:
                self._run_in_pairs(suite, group, finish)

    def _run_in_pairs(self, suite: str, cases: list[dict[str, Any]], finish: Callable) -> None:
        """Share the rounds out among several pairs of processes."""
        rows: dict[tuple[str, str], Row] = {}

        def collect(suite: str, name: str, row: Row) -> None:
            total = rows.setdefault((suite, name), Row(row.unit))
            total.ours += row.ours
            total.peer += row.peer
            total.error = total.error or row.error

        for _ in range(self.plan.pairs):
            with self.workers(suite) as workers:
                self._run_group(workers, suite, cases, collect)
        for (suite, name), row in rows.items():
            finish(suite, name, row)

    @contextmanager
    def workers(self, suite: str, more: dict[str, str] | None = None) -> Iterator[list[Worker]]:
        """A process for each module, with more variables."""
        workers = [suite_worker(module, suite, self.plan, more) for module in self.plan.modules]
        try:
            yield workers
        finally:
            for worker in workers:
                worker.close()

    def _run_group(
        self, workers: list[Worker], suite: str, cases: list[dict[str, Any]], done: Callable
    ) -> None:
        for case in cases:
            row, peak = Row(), Row("MB")
            try:
                samples = self._alternate(workers, case["name"])
                peaks = [[worker.ask("drop")["peak_mb"]] for worker in workers]
                row.ours, row.peer = [*samples, []][:2]
                peak.ours, peak.peer = [*peaks, []][:2]
            except WorkerError as error:
                row.error = str(error)
            self.revive(workers, suite)
            done(suite, case["name"], row)
            if case["peak"] and not row.error:
                beside = bool(SUITES[suite].peers)  # other libraries' rows stay together
                done(suite if beside else "memory", case["name"] + ", peak memory" * beside, peak)

    def revive(self, workers: list[Worker], suite: str, more: dict[str, str] | None = None) -> None:
        """Start new processes in place of those that ended."""
        for index, worker in enumerate(workers):
            if worker.process.poll() is not None:
                workers[index] = suite_worker(worker.module, suite, self.plan, more)
                worker.close()

    def _alternate(self, workers: list[Worker], name: str) -> list[list[float]]:
        """Samples of one row, a list for each worker."""
        plan = self.plan
        for worker in workers:
            worker.ask("prepare", name)
        samples: list[list[float]] = [[] for _ in workers]
        order = list(range(len(workers)))
        rounds, most_rounds = -(-plan.rounds // plan.pairs), -(-plan.most_rounds // plan.pairs)
        end = time.monotonic() + plan.row_seconds / plan.pairs
        for done in range(most_rounds):
            if done >= rounds and (len(workers) < 2 or time.monotonic() > end):
                break
            if done >= rounds and paired_ratio(*samples).noise <= plan.noise:
                break
            for index in order:
                if plan.threads > 1 and len(workers) > 1:
                    time.sleep(0.01)
                samples[index].append(workers[index].ask("sample", plan.budget)["seconds"])
            order.reverse()
        return samples


@contextmanager
def competitors(wanted: bool) -> Iterator[None]:
    """A process that spins on each core, for a machine that is busy with something else."""
    count = records.machine()["cores"] if wanted else 0
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()
