"""Runs operators, failing calls and programs again and again, and looks for what each run leaves behind.

    PYTHONPATH=. python tests/fuzz/leaks.py --kind operators,programs --repeats 10000 --only '^linalg'
    PYTHONPATH=. python tests/fuzz/leaks.py --kind calls,objects,sources --damaged 20000   # needs PyTorch

Kinds: `operators` are the rows of the operator tests, forward, with `out=` and with their gradient;
`programs` those of leak_programs.py; the other three are the damaged calls of damaged_samples.py,
damaged_objects.py and damaged_programs.py, each repeated whether it fails or not.

A case first runs until caches are full, then twice more. What grows in both laps, and again in two longer
ones, is reported: memory of malloc and of tensors, blocks and objects of Python, references to constants,
dtypes and types, open files, threads and mapped memory. Cases that are slow run less often than
`--repeats`: `--seconds` is the time of the processor for one.
"""

import argparse
import contextlib
import ctypes
import gc
import itertools
import os
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

WARM = 0.2  # of the repeats
SPARE = 300  # more than the library keeps of Python's objects of tensors that died
# Less than this in a lap is no leak: the counter's own noise, (at least, for each repeat).
NOISE = {
    "bytes of malloc": (4096, 0.25),
    "bytes mapped": (1 << 22, 64),
    "bytes of tensors": (1, 1 / 1024),
    "blocks of Python": (8, 1 / 64),
    "objects": (1, 1 / 256),
    "open files": (1, 1 / 1024),
    "threads": (1, 1 / 1024),
    "all references": (24, 1 / 16),
}
REFERENCES = (3, 1 / 256)


class Allocations(ctypes.Structure):
    """What glibc's mallinfo2 gives."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


class Meter:
    """Counts of this process that the same work, done once more, should not change."""

    def __init__(self, rl):
        self.rl = rl
        self.allocations = ctypes.CDLL(None).mallinfo2
        self.allocations.restype = Allocations
        self.shared = dict(self._shared())
        self.fewest = len(os.listdir("/proc/self/task"))
        gc.collect()
        gc.freeze()  # what is there for good need not be looked at each time

    def _shared(self):
        """Objects that many hold: a reference that is not given back is seen nowhere else."""
        yield from (("None", None), ("True", True), ("False", False), ("Ellipsis", ...), ("()", ()))
        yield from (("NotImplemented", NotImplemented), ("''", ""), ("b''", b""), ("0", 0), ("1", 1))
        yield from ((kind.__name__, kind) for kind in (int, float, tuple, list, dict, str, type, object))
        for names in (self.rl, self.rl._C, self.rl.nn, self.rl.autograd.function):
            for name in dir(names):
                value = getattr(names, name, None)
                kinds = (type, self.rl.dtype, self.rl.layout, self.rl.memory_format, self.rl.device)
                if isinstance(value, kinds):
                    yield f"rushlight.{name}", value

    def _settle(self):
        """Let threads end that were joined or told to stop: they take a moment."""
        for _ in range(20):
            count = len(os.listdir("/proc/self/task"))
            if count <= self.fewest:
                break
            time.sleep(0.01)
        self.fewest = count

    def read(self):
        self._settle()
        gc.collect()
        gc.collect()  # dictionaries that the first one has emptied are left out of its lists by the next
        sys._clear_type_cache()  # which keeps names
        spare = [self.rl.empty(1) for _ in range(SPARE)]
        del spare
        malloc = self.allocations()
        counts = {
            "bytes of malloc": malloc.uordblks + malloc.hblkhd,
            "bytes of tensors": self.rl._C._cpu_memory_stats()["allocated_bytes.current"],
            "blocks of Python": sys.getallocatedblocks(),
            "objects": len(gc.get_objects()),
        }
        # Listing a folder opens it.
        counts["open files"] = len(os.listdir("/proc/self/fd"))
        counts["threads"] = len(os.listdir("/proc/self/task"))
        with open("/proc/self/statm") as file:
            counts["bytes mapped"] = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        if hasattr(sys, "gettotalrefcount"):
            counts["all references"] = sys.gettotalrefcount()
        return counts | {f"references to {k}": sys.getrefcount(v) for k, v in self.shared.items()}


def more(before, after, times):
    """What grew by more than noise."""
    grown = {}
    for name, count in after.items():
        least, rate = NOISE.get(name, REFERENCES)
        if count - before.get(name, count) >= max(least, rate * times):
            grown[name] = count - before[name]
    return grown


def repeat(run, times):
    for _ in itertools.repeat(None, times):
        run()


def measure(meter, run, repeats, seconds):
    """(how often it ran, what it leaves behind each time, by name)"""
    started = time.process_time()
    repeat(run, 3)
    one = (time.process_time() - started) / 3 + 1e-7
    times = min(repeats, max(10, int(seconds / one)))
    warm = max(3, int(times * WARM))
    repeat(run, warm)
    lap, done = (times - warm) // 2 + 1, 3 + warm
    left = None
    for length in (lap, lap, 2 * lap, 2 * lap):
        before = meter.read()
        repeat(run, length)
        grown = more(before, meter.read(), length)
        done += length
        left = {name: n / length for name, n in grown.items() if left is None or name in left}
        if not left:
            if length == lap and done < times:
                repeat(run, times - done)  # the count that was asked for
                done = times
            break
    return done, left


# --- cases --------------------------------------------------------------------------------------------------


def operator_cases(rl, pattern):
    """name, make: rows forward, with `out=`, and with their gradient."""
    import failing_memory

    yield from failing_memory.operator_cases(rl, pattern)
    sys.path.insert(0, str(FOLDER.parent / "python" / "ops"))
    import engine
    import loader

    def with_target(row, dtype):
        function = engine.resolve(rl, row.name)
        args, kwargs = engine.arguments(rl, loader.samples(row, dtype)[0], dtype)
        result = function(*args, **kwargs)
        return lambda: function(*args, **kwargs, out=result)

    for row in loader.ROWS:
        dtype = loader.main_dtype(row)
        if re.search(pattern, row.id) and not loader.refusal(row, "out"):
            yield f"{row.id}, out=", lambda row=row, dtype=dtype: with_target(row, dtype)


def program_cases(rl, pattern):
    import failing_memory
    import leak_programs

    for name, make in {**failing_memory.PROGRAMS, **leak_programs.PROGRAMS}.items():
        if re.search(pattern, name):
            yield name, lambda make=make: make(rl)


KINDS = {"operators": operator_cases, "programs": program_cases}
DAMAGED = {
    "calls": ("damaged_samples", "Search"),
    "objects": ("damaged_objects", "ObjectSearch"),
    "sources": ("damaged_programs", "ProgramSearch"),
}


def search(rl, kind, options, say):
    """(cases, runs, findings) of one kind."""
    cases = runs = found = 0
    meter = Meter(rl)
    for name, make in KINDS[kind](rl, options.only):
        try:
            run = make()
            run()
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
            if kind == "programs":
                raise
            del error
            continue  # a sample that the operator refuses
        done, left = measure(meter, run, options.repeats, options.seconds)
        cases, runs = cases + 1, runs + done
        if options.verbose:
            print(f"{name}: {done}", flush=True)
        if left:
            found += 1
            say(name, done, left)
    return cases, runs, found


def damaged_search(kind, options, say):
    """The same for damaged calls: each is made once, and then repeated with the same arguments."""
    module, name = DAMAGED[kind]
    module = __import__(module)
    base = getattr(module, name)

    class Runner(base.Runner):
        meter = None
        runs = 0

        def run(self, sample, functions_here, seed):
            self.meter = self.meter or Meter(self.rl)
            self.tried += 1
            text, function, args, kwargs, _ = self.arguments(sample, functions_here, seed)
            same, failed = (function, args, kwargs), [False]

            def run():
                if kind != "calls":  # what is given to an object is its own
                    _, function, args, kwargs, _ = self.arguments(sample, functions_here, seed)
                else:
                    function, args, kwargs = same
                try:
                    function(*args, **kwargs)
                except (Exception, RecursionError):
                    failed[0] = True

            started = time.process_time()
            run()
            self.failed += failed[0]
            if time.process_time() - started > options.seconds / 8:
                return None
            # What is written in place again and again has a longer history each time.
            with contextlib.nullcontext() if failed[0] else self.rl.no_grad():
                done, left = measure(self.meter, run, options.repeats, options.seconds)
            print(f"RUNS {done}", flush=True)
            if left:
                how = "failing" if failed[0] else "succeeding"
                return f"{how}: {described(done, left)}\n  {self.words(text, args, kwargs)}"
            return None

    class Search(base):
        runs = 0

        def take(self, line, listen):
            if line.startswith("RUNS "):
                self.runs += int(line[5:])
                return ""
            return super().take(line, listen)

    Search.Runner = Runner
    damaged_options = argparse.Namespace(
        calls=options.damaged, seed=options.seed, only=options.only, verbose=False, case=None
    )
    with tempfile.TemporaryDirectory() as folder:  # for files whose names are damaged
        before = os.getcwd()
        os.chdir(folder)
        try:
            looking = Search(damaged_options, lambda line: print(line, flush=True))
            tried, failed = looking.run()
        finally:
            os.chdir(before)
    print(f"{tried} damaged calls, {failed} of them refused")
    return tried, looking.runs, len(looking.findings)


def described(times, left):
    return f"{times} runs, each leaves " + ", ".join(f"{n:.3g} {name}" for name, n in left.items())


def count_exactly():
    """Start again with nothing that fills up slowly and looks like a leak.

    malloc counts what it keeps for later calls as used, and the flight recorder keeps the last calls.
    """
    wanted = {
        "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0",
        "TORCH_FR_BUFFER_SIZE": "20",
    }
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | wanted)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", default="operators,programs", help=", ".join([*KINDS, *DAMAGED]))
    parser.add_argument("--repeats", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=2.0, help="of the processor for one case, about")
    parser.add_argument("--damaged", type=int, default=5000, help="damaged calls of each kind")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--only", default="", help="cases whose name matches")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    count_exactly()
    warnings.simplefilter("ignore")
    import rushlight as rl
    from rushlight.distributed import _recorder

    _recorder._MANY = 0  # groups are forgotten in laps of a hundred otherwise
    rl.set_num_threads(1)
    say = lambda name, done, left: print(f"FOUND {name}: {described(done, left)}", flush=True)
    total = 0
    for kind in options.kind.split(","):
        known = kind in KINDS
        cases, runs, found = search(rl, kind, options, say) if known else damaged_search(kind, options, say)
        print(f"{kind}: {cases} cases, {runs} runs, {found} leaks", flush=True)
        total += found
    return total > 0


if __name__ == "__main__":
    sys.exit(main())
