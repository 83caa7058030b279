"""A process that times the cases of one suite on one module, as told line by line on its standard input.

python -m benchmarks.worker MODULE SUITE THREADS wall|cpu measured|tiny
"""

import contextlib
import gc
import importlib
import json
import os
import statistics
import sys
import time
import timeit
from contextlib import ExitStack
from typing import Any

from .peers import PEERS
from .suites import SUITES

BATCH = 5e-4  # seconds: well above the clock's error and below a time slice
SLOW = 0.1  # a call this long needs no more than one to warm up


def main(module: str, suite: str, threads: str, clock: str, sizes: str) -> None:
    # What the cases print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = Worker(module, suite, int(threads), clock == "cpu", sizes == "tiny")
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        try:
            answer = getattr(worker, command)(*arguments)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        answers.write(json.dumps(answer) + "\n")


def import_as_torch(module: str) -> Any:
    """Suites are PyTorch programs: they `import torch`, which is made to mean the module."""
    if module != "torch":
        importlib.import_module(module + "._command.alias").install_for_children()
    return importlib.import_module("torch")


def keep_to_cores(count: int) -> None:
    """Libraries of which not each has a switch start as many threads as there are cores."""
    with contextlib.suppress(AttributeError):  # not on every system
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])


class Worker:
    def __init__(self, module: str, suite: str, threads: int, cpu_clock: bool, tiny: bool) -> None:
        if SUITES[suite].peers:
            keep_to_cores(threads)
        if module in PEERS:
            programs = importlib.import_module(f"benchmarks.peers.{module}")
            self.version = programs.version
        else:
            torch = import_as_torch(module)
            torch.set_num_threads(threads)
            torch.manual_seed(0)
            programs = importlib.import_module(f"benchmarks.suites.{suite}")
            self.version = torch.__version__
        self.clock = time.process_time if cpu_clock else time.perf_counter
        self.suite = programs
        cases = programs.cases(lambda measured, small: small if tiny else measured)
        self.cases = {case.name: case for case in cases}
        self.prepared: dict[str, tuple[timeit.Timer, int]] = {}
        self.stack = ExitStack()
        gc.collect()
        gc.freeze()  # collections between cases need not look at the library itself

    def list(self) -> dict[str, Any]:
        cases = [
            {"name": case.name, "process": case.process, "peak": case.peak} for case in self.cases.values()
        ]
        return {"cases": cases, "version": self.version}

    def prepare(self, name: str, beside: bool = False) -> dict[str, Any]:
        """Set a case up, run it once, and find how many calls fill a batch; `beside` keeps others."""
        if not beside:
            self.drop()
        self.timer = self.cases[name].prepare(self.stack, self.clock)
        self.calls = 1
        if self.timer.timeit(1) < SLOW:
            while (seconds := self.timer.timeit(self.calls)) < BATCH:
                self.calls *= 2 if seconds > BATCH / 8 else 8
        self.prepared[name] = self.timer, self.calls
        return {"calls": self.calls, "first_call": getattr(self.suite, "first_calls", {}).get(name)}

    def sample(self, budget: float, name: str = "") -> dict[str, Any]:
        """Seconds per call: the median of the batches that fit into the budget, of one at least."""
        if name:
            self.timer, self.calls = self.prepared[name]
        batches: list[float] = []
        end = time.perf_counter() + budget
        while not batches or time.perf_counter() < end:
            batches.append(self.timer.timeit(self.calls) / self.calls)
        return {"seconds": statistics.median(batches)}

    def drop(self) -> dict[str, Any]:
        """Let go of the case; the answer is the process's peak memory so far."""
        self.timer = None  # type: ignore[assignment]
        self.prepared.clear()
        self.stack.close()
        gc.collect()
        return {"peak_mb": peak_memory()}


def peak_memory() -> float:
    """MB of memory that this process occupied at most."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
