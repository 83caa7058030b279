"""How many calls of a module a second several threads make, each with inputs that are drawn at random."""

import itertools
import random
import threading
import time

import rushlight

__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]


def format_time(time_us=None, time_ms=None, time_s=None):
    """A time, given in one of three units, in the unit that fits it."""
    given = [
        value * unit for value, unit in ((time_us, 1.0), (time_ms, 1e3), (time_s, 1e6)) if value is not None
    ]
    if len(given) != 1:
        raise AssertionError("Expected only one of time_us, time_ms, time_s is given.")
    for name, unit in (("s", 1e6), ("ms", 1e3)):
        if given[0] >= unit:
            return f"{given[0] / unit:.3f}{name}"
    return f"{given[0]:.3f}us"


class ExecutionStats:
    """What `ThroughputBenchmark.benchmark` measured: `num_iters` calls of `latency_avg_ms` each."""

    def __init__(self, num_iters, latency_avg_ms, num_calling_threads):
        self.num_iters, self.latency_avg_ms = num_iters, latency_avg_ms
        self._threads = num_calling_threads

    @property
    def iters_per_second(self):
        """Calls a second of all threads together."""
        return self.num_iters / self.total_time_seconds

    @property
    def total_time_seconds(self):
        """How long all calls took side by side."""
        return self.num_iters * (self.latency_avg_ms / 1000) / self._threads

    def __str__(self):
        return "\n".join(
            [
                f"Average latency per example: {format_time(time_ms=self.latency_avg_ms)}",
                f"Total number of iterations: {self.num_iters}",
                f"Total number of iterations per second (across all threads): {self.iters_per_second:.2f}",
                f"Total time: {format_time(time_s=self.total_time_seconds)}",
            ]
        )


class ThroughputBenchmark:
    """Calls a module from several threads, as a server of inferences does.

    Python code of the module runs in one thread at a time; operators run beside each other.

    Args:
        module (Module or ScriptModule): what is called.

    Example:
        >>> bench = torch.utils.ThroughputBenchmark(torch.nn.Linear(2, 1))
        >>> bench.add_input(torch.ones(1, 2))
        >>> bench.benchmark(num_calling_threads=2, num_iters=10).num_iters >= 10
        True
    """

    def __init__(self, module):
        self._module, self._inputs = module, []

    def add_input(self, *args, **kwargs):
        """Keeps arguments of a call; each call gets some of those that were added."""
        self._inputs.append((args, kwargs))

    def run_once(self, *args, **kwargs):
        """What the module answers to these arguments."""
        with rushlight.no_grad():
            return self._module(*args, **kwargs)

    def benchmark(self, num_calling_threads=1, num_warmup_iters=10, num_iters=100, profiler_output_path=""):
        """Measures.

        Args:
            num_calling_threads (int): threads that call the module.
            num_warmup_iters (int): calls of each thread before it is measured.
            num_iters (int): measured calls of all threads together.
            profiler_output_path (str): a file for a trace of the measured calls.

        Returns: `ExecutionStats`.

        Raises: RuntimeError without inputs.
        """
        if not self._inputs:
            raise RuntimeError("Please provide benchmark inputs.Did you forget to call add_input()? ")
        if num_calling_threads < 1:
            raise RuntimeError("expected at least one calling thread")
        run = _Run(self, num_calling_threads, num_warmup_iters, num_iters)
        if not profiler_output_path:
            return run.measure()
        options = rushlight.profiler._ExperimentalConfig(profile_all_threads=True)
        with rushlight.profiler.profile(experimental_config=options) as profiler:
            stats = run.measure()
        profiler.export_chrome_trace(profiler_output_path)
        return stats


class _Run:
    """One measurement: threads that start together once all are warm."""

    def __init__(self, benchmark, threads, warmups, iterations):
        self._benchmark, self._warmups = benchmark, warmups
        self._ready = threading.Barrier(threads + 1)
        self._left = itertools.repeat(None, iterations)
        self._made, self._errors = [], []
        self._threads = [threading.Thread(target=self._work, args=(i,)) for i in range(threads)]

    def measure(self):
        for thread in self._threads:
            thread.start()
        try:
            self._ready.wait()
        except threading.BrokenBarrierError:
            pass  # a thread failed, and says why
        begin = time.perf_counter()
        for thread in self._threads:
            thread.join()
        seconds = time.perf_counter() - begin
        if self._errors:
            raise self._errors[0]
        count = sum(self._made)
        return ExecutionStats(count, seconds * 1000 * len(self._threads) / max(count, 1), len(self._threads))

    def _work(self, number):
        try:
            draw = random.Random(number).choice
            inputs = self._benchmark._inputs
            for _ in range(self._warmups):
                args, kwargs = draw(inputs)
                self._benchmark.run_once(*args, **kwargs)
            self._ready.wait()
            made = 0
            for _ in self._left:
                args, kwargs = draw(inputs)
                self._benchmark.run_once(*args, **kwargs)
                made += 1
            self._made.append(made)
        except threading.BrokenBarrierError:
            pass
        except BaseException as error:
            self._errors.append(error)
            self._ready.abort()
