"""Calls every operator that PyTorch has samples for with one or two arguments damaged.

    PYTHONPATH=. python tests/fuzz/damaged_samples.py --calls 2000000 --seed 1 --only '^linalg'

The samples are those of PyTorch's own tests (`op_db`), the calls Rushlight's. They run in a child process. No
call may end it, take 10 seconds, speak of C++ inside, or leave a trace when it fails: recursion depth, grad
mode, autocast, default dtype and modes are as before, and so are reference counts and the memory of tensors.
"""

import argparse
import faulthandler
import gc
import math
import mmap
import os
import random
import re
import select
import signal
import struct
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # behind a build that the caller puts on the path
sys.path.insert(0, str(ROOT / "tests" / "python" / "tensor"))

from damage import EXPECTED, Damage  # noqa: E402
from hostile import backward, check_result, describe, limit_memory  # noqa: E402
from operator_samples import DTYPES, Translator, database, functions, samples_of  # noqa: E402

SECONDS_PER_CALL = 10  # of the processor
SECONDS_MORE = 2  # until what cannot be interrupted ends the process
SILENCE = 120  # seconds without a sign of life, for a call that waits instead of computing
# What a message must not show: the standard library, our own files, an internal check.
INSIDES = re.compile(
    r"std::|vector<|vector::|basic_string|bad_alloc|_M_\w|__gnu|\bstl_|what\(\)|\bsto[idl]+\b|max_size\(\)"
    r"|unordered_|internal check|INTERNAL|\b[\w/]+\.(?:h|hpp|cc|cpp|cxx|cu)\b(?![\w.])"
    r"|rushlight::|nullptr"
)


# --- one call -----------------------------------------------------------------------------------------------


class State:
    """What a failed call must leave alone."""

    def __init__(self, rl):
        self.rl = rl
        self.limit = sys.getrecursionlimit()
        self.modes = self.read()

    def read(self):
        rl = self.rl
        return {
            "grad mode": rl.is_grad_enabled(),
            "inference mode": rl.is_inference_mode_enabled(),
            "autocast": rl.is_autocast_enabled("cpu"),
            "autocast's dtype": str(rl.get_autocast_dtype("cpu")),
            "autocast's cache": rl.is_autocast_cache_enabled(),
            "default dtype": str(rl.get_default_dtype()),
            "threads": rl.get_num_threads(),
            "deterministic algorithms": rl.are_deterministic_algorithms_enabled(),
            "anomaly mode": rl.is_anomaly_enabled(),
            "function modes": rl._C._len_torch_function_stack(),
            "dispatch modes": rl._C._len_torch_dispatch_stack(),
        }

    def depth(self):
        """How deep the interpreter believes to be: a lower limit than that is refused."""
        for limit in range(1, self.limit):
            try:
                sys.setrecursionlimit(limit)
            except RecursionError:
                continue
            sys.setrecursionlimit(self.limit)
            return limit
        return self.limit

    def deeper_than(self, depth):
        try:
            sys.setrecursionlimit(depth)
        except RecursionError:
            return True
        sys.setrecursionlimit(self.limit)
        return False

    def memory(self):
        stats = self.rl._C._cpu_memory_stats()
        return stats["allocated_bytes.current"], stats["tiny_bytes.current"]


class Endless(BaseException):
    """Raised where a call takes too long and can be interrupted."""


def stop_endless(*_):
    raise Endless


def time_call(seconds):
    """Starts the clock of a call, or stops it."""
    signal.signal(signal.SIGPROF, stop_endless)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds and seconds + SECONDS_MORE)


def message_of(error):
    notes = getattr(error, "__notes__", ())
    return "\n".join(str(part) for part in (error, *notes))


class Runner:
    State = State
    may_loop = False  # whether arguments may set how often a loop of Python runs

    def __init__(self, rl, oracle):
        self.rl, self.state = rl, self.State(rl)
        self.translator = Translator(rl, oracle)
        self.tried = self.failed = 0
        self.base = None

    def arguments(self, sample, functions_here, seed):
        rng = random.Random(seed)
        text, function = rng.choice(functions_here)
        args, kwargs = Damage(self.rl, rng).call(
            *self.translator.value(((sample.input, *sample.args), sample.kwargs))
        )
        return text, function, args, kwargs, rng

    def words(self, text, args, kwargs):
        def said(value):
            try:
                return describe(self.rl, value)
            except Exception as error:
                return f"<{type(value).__name__}: {type(error).__name__}>"

        parts = [said(a) for a in args] + [f"{k}={said(v)}" for k, v in kwargs.items()]
        return f"{text}({', '.join(parts)})"[:3000]

    def run(self, sample, functions_here, seed):
        """One call; what is wrong with it, or None."""
        self.tried += 1
        problem, refused = self.once(sample, functions_here, seed)
        self.failed += refused
        # What is kept by the first call alone is a cache, or room that the next one uses again.
        for _ in range(2):
            if problem and problem.startswith("keeps"):
                problem, _ = self.once(sample, functions_here, seed)
        return problem

    def once(self, sample, functions_here, seed):
        text, function, args, kwargs, rng = self.arguments(sample, functions_here, seed)
        # Shared constants are counted by everybody.
        held = [v for v in (*args, *kwargs.values()) if isinstance(v, (self.rl.Tensor, list, dict))]
        before = [sys.getrefcount(value) for value in held]
        # A target of `out` keeps the size that it was given before the call failed.
        memory = (math.inf, math.inf) if "out" in kwargs else self.state.memory()
        problem, error = None, None
        started = time.process_time()
        time_call(SECONDS_PER_CALL)
        try:
            result = function(*args, **kwargs)
        except EXPECTED as caught:
            error = caught.with_traceback(None)  # whose frames hold what has used up the memory
        except Exception as caught:
            error = caught
            if not self.accepts(caught):
                problem = f"{type(caught).__name__}: {caught}"
        except Endless as caught:
            error = caught
        finally:
            time_call(0)
        if not self.may_loop and time.process_time() - started > SECONDS_PER_CALL / 2:
            problem = f"{time.process_time() - started:.0f} s"
        if error is None:
            problem = problem or self.checked(result, rng)
            del result
        else:
            problem = problem or self.left_behind(error, held, before, memory)
        if self.state.read() != self.state.modes:
            now = self.state.read()
            problem = "left changed: " + ", ".join(k for k in now if now[k] != self.state.modes[k])
        return f"{problem}\n  {self.words(text, args, kwargs)}" if problem else None, error is not None

    def accepts(self, error):
        """A plain `assert` of PyTorch's that programs know, or a device that is not there."""
        return isinstance(error, AssertionError) and bool(str(error))

    def left_behind(self, error, held, before, memory):
        message = message_of(error)
        if found := INSIDES.search(message):
            return f"says {found[0]!r}: {type(error).__name__}: {message}"
        said = f"{type(error).__name__}: {error}"
        error.__traceback__ = error.__context__ = error.__cause__ = None
        if isinstance(error, AttributeError):
            error.obj = None  # Python names the object there
        del error
        return None if self.settled(held, before, memory) else f"keeps a reference or memory after {said}"

    def settled(self, held, before, memory):
        """Counts are as before; the caller's exception is still bound, which holds nothing of the call."""
        if [sys.getrefcount(value) for value in held] == before and self.state.memory() <= memory:
            return True
        gc.collect()
        return [sys.getrefcount(value) for value in held] == before and self.state.memory() <= memory

    def checked(self, result, rng):
        try:
            check_result(self.rl, result)
            if rng.random() < 0.3:
                time_call(SECONDS_PER_CALL)
                backward(self.rl, result)
        except Endless:
            return "a backward pass of 10 s"
        except EXPECTED as error:
            if found := INSIDES.search(message_of(error)):
                return f"afterwards says {found[0]!r}: {message_of(error)}"
        except Exception as error:
            if not str(error).endswith("in 0 bytes"):  # a view of a storage that was emptied
                return f"afterwards {type(error).__name__}: {error}"
        finally:
            time_call(0)
        return None


# --- processes ----------------------------------------------------------------------------------------------


class Search:
    """Both libraries are imported once; the calls run in copies of this process, anew after each crash."""

    Runner = Runner

    def __init__(self, options, say):
        import torch

        import rushlight as rl

        warnings.simplefilter("ignore")
        rl.set_num_threads(1)
        torch.set_num_threads(1)
        self.options, self.say, self.rl, self.oracle = options, say, rl, torch
        self.names = self.subjects()
        self.each = max(1, math.ceil(options.calls / max(1, len(self.names))))
        self.progress = mmap.mmap(-1, 4096)  # shared: operator, case, calls, calls refused
        self.findings, self.skipped = [], []
        rl.ones(64, 64) @ rl.ones(64, 64)

    def subjects(self):
        return [n for n in sorted(database()) if re.search(self.options.only, n) and not n.startswith("_")]

    def run(self):
        """(calls, calls refused)"""
        tried = failed = 0
        start = (0, 0)
        while start is not None:
            status, output = self.copy(lambda start=start: self.work(*start))
            operator, case, more, refused = struct.unpack("qqqq", self.progress[:32])
            tried, failed = tried + more, failed + refused
            start = None
            if status:
                self.found(
                    f"{self.seed(operator, case)}: {status}\n  {self.shown(operator, case)}{stack(output)}"
                )
                start = (operator, case + 1)
        return tried, failed

    def seed(self, operator, case):
        return f"{self.options.seed}/{self.names[operator]}/{case}"

    def shown(self, operator, case):
        """The call of a case, made again in a process of its own."""
        _, output = self.copy(lambda: print("CASE", self.describe(operator, case), flush=True), listen=False)
        call = re.search(r"^CASE (.*)", output, re.M)
        return call[1] if call else "?"

    def describe(self, operator, case):
        runner = self.Runner(self.rl, self.oracle)
        found, samples = self.prepare(runner, self.names[operator])
        text, _, args, kwargs, _ = runner.arguments(
            samples[case % len(samples)], found, self.seed(operator, case)
        )
        return runner.words(text, args, kwargs)

    def prepare(self, runner, name):
        found = functions(self.rl, name)
        # Making samples costs more than calling: a short search takes two dtypes and the first samples.
        short = self.each < 50
        kinds = random.Random(f"{self.options.seed}/{name}").sample(DTYPES[1:], 2) if short else DTYPES[1:]
        most = 2 * self.each if short else 1 << 20
        samples = [s for d in ("float32", *kinds) for s in samples_of(name, d, most)] if found else []
        return found, [s for s in samples if translates(runner, s)]

    def copy(self, work, listen=True):
        """Runs something in a copy of this process: (how it was ended, what it printed)."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            os.dup2(write, 1)
            os.dup2(write, 2)
            faulthandler.enable()
            work()
            sys.stdout.flush()
            os._exit(0)
        os.close(write)
        output, buffer, last = "", b"", None
        while True:
            if not select.select([read], [], [], SILENCE)[0]:
                at = self.progress[:16]
                if at == last:
                    os.kill(pid, signal.SIGABRT)
                last = at
                continue
            data = os.read(read, 1 << 16)
            if not data:
                break
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                output = (output + self.take(line.decode(errors="replace"), listen))[-20000:]
        os.close(read)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return status and (signal.Signals(-status).name if status < 0 else f"exit status {status}"), output

    def take(self, line, listen):
        if listen and line.startswith("FOUND "):
            self.found(line[6:].replace("\\n", "\n"))
        elif listen and line.startswith("SKIP "):
            self.skipped.append(line[5:])
        elif listen and line.startswith("OP "):
            self.options.verbose and self.say(line)
        else:
            return line + "\n"
        return ""

    def found(self, text):
        self.findings.append(text)
        self.say("FOUND " + text)

    def work(self, first_operator, first_case):
        runner = self.Runner(self.rl, self.oracle)
        limit_memory()
        for operator in range(first_operator, len(self.names)):
            name = self.names[operator]
            found, samples = self.prepare(runner, name)
            print(f"OP {operator} of {len(self.names)}: {name}", flush=True)
            if not samples:
                print(f"SKIP {name}: {'no sample' if found else 'no such function'}", flush=True)
                continue
            depth = runner.state.depth()
            for case in range(first_case if operator == first_operator else 0, self.each):
                self.progress[:32] = struct.pack("qqqq", operator, case, runner.tried + 1, runner.failed)
                problem = runner.run(samples[case % len(samples)], found, self.seed(operator, case))
                if runner.state.deeper_than(depth):
                    problem = (problem or "") + "leaves the interpreter deeper"
                    depth = runner.state.depth()
                if problem:
                    text = f"FOUND {self.seed(operator, case)}: {problem}"
                    print(text.replace("\n", "\\n"), flush=True)
        self.progress[16:32] = struct.pack("qq", runner.tried, runner.failed)


def stack(output):
    """What is said where a process ends: the handler's stack, or the exception of this program itself."""
    return "".join(
        f"\n  {line.strip()}" for line in output.splitlines() if re.match(r"  File|Fatal|\w*Error", line)
    )


def translates(runner, sample):
    try:
        runner.translator.value(((sample.input, *sample.args), sample.kwargs))
        return True
    except (LookupError, AttributeError, TypeError, RuntimeError, NotImplementedError):
        return False


def main(kind=Search, parser=None):
    parser = parser or argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=20000, help="in all, spread evenly over the operators")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--only", default="", help="regular expression for names of operators")
    parser.add_argument("--case", help="only this case, as a finding names it")
    parser.add_argument("--verbose", action="store_true", help="name each operator")
    options = parser.parse_args()
    say = lambda line: print(line, flush=True)
    if options.case:
        options.seed, name, case = options.case.split("/")
        options.only, options.calls = f"^{re.escape(name)}$", int(case) + 1
        search = kind(options, say)
        say(search.describe(0, int(case)))
        status, output = search.copy(lambda: search.work(0, int(case)))
        say(f"{status or 'ended'}\n{output}")
        return 1 if search.findings or status else 0
    search = kind(options, say)
    tried, failed = search.run()
    count = len(search.findings)
    print(f"{tried} calls, {failed} refused, {len(search.skipped)} operators skipped, {count} findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
