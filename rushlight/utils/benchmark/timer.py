"""The stop watch."""

import enum
import statistics
import textwrap
import timeit

import rushlight
from rushlight.utils.benchmark.measurement import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]

timer = timeit.default_timer


class Language(enum.Enum):
    PYTHON = 0
    CPP = 1


class Timer:
    """Measures a statement, by default with one thread.

    Args:
        stmt, setup: what is run, and what is run once before it.
        globals: the names that both see.
        label, sub_label, description: the table, the row and the column in `Compare`.
        env: another part of a row's name.
        num_threads: how many threads operators use.

    >>> Timer("x @ x", globals={"x": torch.ones(64, 64)}).blocked_autorange()
    """

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt="pass",
        setup="pass",
        global_setup="",
        timer=timer,
        globals=None,
        label=None,
        sub_label=None,
        description=None,
        env=None,
        num_threads=1,
        language=Language.PYTHON,
    ):
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++") or global_setup:
            raise NotImplementedError(
                "Timer: only Python is measured; build C++ with torch.utils.cpp_extension and call it"
            )
        # The measured statement sees torch, as programs in examples expect.
        self._globals = {"torch": rushlight, **(globals or {})}
        stmt, setup = textwrap.dedent(stmt).strip(), textwrap.dedent(setup).strip()
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = TaskSpec(
            stmt=stmt,
            setup=setup,
            label=label,
            sub_label=sub_label,
            description=description,
            env=env,
            num_threads=num_threads,
        )

    def _measure(self, number):
        return max(self._timer.timeit(number), 1e-9)

    def _result(self, number, times):
        return Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)

    def timeit(self, number=1000000):
        """One measurement of that many runs, after some to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._measure(max(number // 100, 2))
            return self._result(number, [self._measure(number)])

    def _block_size(self, min_run_time):
        """How many runs the clock can tell apart from nothing, as far as the time allows."""
        overhead = statistics.median([self._timer_cls("pass").timeit(0) for _ in range(5)])
        number = 1
        while True:
            taken = self._measure(number)
            precise = overhead / taken <= 1e-4 and taken >= min_run_time / 1000
            if precise or taken > min_run_time:
                return number
            number *= 10

    def _collect(self, number, min_run_time, max_run_time, enough, callback=None):
        times, total = [], 0.0
        while total < min_run_time or not enough(times):
            if times and total >= max_run_time:
                break
            taken = self._measure(number)
            if callback is not None:
                callback(number, taken)
            times.append(taken)
            total += taken
        return self._result(number, times)

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Measure blocks of runs, long enough for the clock, for at least ``min_run_time`` seconds."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            return self._collect(number, min_run_time, min_run_time, lambda times: True, callback)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """Measure until the interquartile range is below a part of the median, or the time is up."""

        def enough(times):
            return len(times) >= 3 and self._result(number, times).meets_confidence(threshold)

        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(0.05)
            return self._collect(number, min_run_time, max_run_time, enough, callback)
