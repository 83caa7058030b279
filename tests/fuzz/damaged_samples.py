"""Calls every operator that PyTorch has samples for with one or two arguments damaged.

    PYTHONPATH=. python tests/fuzz/damaged_samples.py --calls 2000000 --seed 1 --only '^linalg'

The samples are those of PyTorch's own tests (`op_db`), the calls Rushlight's. They run in a child process. No
call may end it, take 10 seconds, speak of C++ inside, or leave a trace when it fails: recursion depth, grad
mode, autocast, default dtype and modes are as before, and so are reference counts and the memory of tensors.
"""

import argparse
import collections
import faulthandler
import functools
import gc
import itertools
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
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests" / "python" / "tensor"))

from hostile import LAYOUTS, backward, check_result, describe, limit_memory  # noqa: E402

SECONDS_PER_CALL = 10  # of the processor
SECONDS_MORE = 2  # until what cannot be interrupted ends the process
SILENCE = 120  # seconds without a sign of life, for a call that waits instead of computing
SAMPLES = 24  # of an operator and dtype, spread over all there are
DTYPES = ("float32", "float64", "int64", "complex64", "bool", "bfloat16", "uint8", "float16", "int32")
HUGE = (
    2**31 - 1,
    2**31,
    2**32 + 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64,
    -(2**31),
    -(2**62),
    -(2**63),
    -(2**64),
    10**30,
)
SMALL = (-3, -2, -1, 0, 1, 2, 3, 7, 64, 65)
FLOATS = (0.0, -0.0, 1.5, -1.0, 1e-300, 1e30, 1e308, -1e308, math.inf, -math.inf, math.nan)
EXPECTED = (
    ArithmeticError, AttributeError, BufferError, LookupError, MemoryError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip
# What a message must not show: the standard library, our own files, an internal check.
INSIDES = re.compile(
    r"std::|vector<|vector::|basic_string|bad_alloc|_M_\w|__gnu|\bstl_|what\(\)|\bsto[idl]+\b|max_size\(\)"
    r"|unordered_|internal check|INTERNAL|\b[\w/]+\.(?:h|hpp|cc|cpp|cxx|cu)\b(?![\w.])"
    r"|rushlight::|nullptr"
)


# --- samples ------------------------------------------------------------------------------------------------


@functools.cache
def database():
    from torch.testing._internal.common_methods_invocations import op_db

    named = collections.defaultdict(list)
    for op in op_db:
        named[op.name].append(op)
    return named


class Translator:
    """PyTorch's values as Rushlight's; tensors keep strides, offset, conjugation and need of gradients."""

    def __init__(self, rl, oracle):
        self.rl, self.oracle = rl, oracle
        names = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float32 float64 complex64 complex128"
        self.known = {getattr(oracle, name) for name in names.split()}

    def plain(self, t):
        if t.dtype in (self.oracle.bfloat16, self.oracle.float16):
            return self.rl.from_numpy(t.float().numpy().copy()).to(getattr(self.rl, str(t.dtype)[6:]))
        if t.dtype == self.oracle.complex32:
            return self.rl.from_numpy(t.to(self.oracle.complex64).numpy().copy()).to(self.rl.complex32)
        if t.dtype not in self.known:
            raise LookupError(f"samples of {t.dtype} are not translated")
        return self.rl.from_numpy(t.numpy().copy())

    def tensor(self, t):
        needs, base = t.requires_grad, t.detach()
        if base.layout != self.oracle.strided:
            raise LookupError(f"samples of layout {base.layout} are not translated")
        conj, neg = base.is_conj(), base.is_neg()
        base = base.resolve_conj().resolve_neg()
        if base.is_contiguous() or base.numel() == 0:
            result = self.plain(base.contiguous())
        else:
            extent = 1 + sum((n - 1) * s for n, s in zip(base.shape, base.stride()))
            flat = base.as_strided((extent,), (1,)).clone()
            result = self.plain(flat).as_strided(tuple(base.shape), base.stride())
        result = result.neg()._neg_view() if neg and hasattr(result, "_neg_view") else result
        result = result.conj().resolve_conj().conj() if conj else result
        return result.detach().requires_grad_() if needs else result

    def value(self, v):
        oracle, rl = self.oracle, self.rl
        if isinstance(v, oracle.Tensor):
            return self.tensor(v)
        if isinstance(v, oracle.Size):
            return rl.Size(v)
        if type(v) in (list, tuple):
            return type(v)(self.value(e) for e in v)
        if isinstance(v, dict):
            return {k: self.value(e) for k, e in v.items()}
        if isinstance(v, slice):
            return slice(*map(self.value, (v.start, v.stop, v.step)))
        if isinstance(v, (oracle.dtype, oracle.layout, oracle.memory_format)):
            return getattr(rl, str(v)[6:])
        if isinstance(v, oracle.device):
            return rl.device(str(v))
        if isinstance(v, oracle.Generator):
            return rl.Generator()
        if getattr(type(v), "__module__", "").startswith("torch"):
            raise LookupError(f"samples with a {type(v).__name__} are not translated")
        return v


def functions(rl, name):
    """What Rushlight has under the operator's name: (text, function)."""
    found, at = [], rl
    for part in name.split("."):
        at = getattr(at, part, None)
    if callable(at):
        found.append((name, at))
    short = name.rsplit(".", 1)[-1]
    for method in dict.fromkeys((short, short + "_")):
        if callable(getattr(rl.Tensor, method, None)) and not name.startswith("nn."):
            found.append((f"Tensor.{method}", getattr(rl.Tensor, method)))
    return found


def samples_of(name, dtype, most):
    """The oracle's samples, spread over those it makes first; no dtype that an operator lacks."""
    import torch

    found = []
    for op in database()[name]:
        kind = getattr(torch, dtype)
        if kind not in op.dtypes:
            continue
        torch.manual_seed(0)
        needs = kind.is_floating_point or kind.is_complex
        try:
            made = op.sample_inputs("cpu", kind, requires_grad=needs and op.supports_autograd)
            all_samples = list(itertools.islice(made, most))
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError, AssertionError, KeyError):
            continue  # the generators of some operators know a few dtypes only
        found += [s for s in all_samples if sum(t.numel() for t in tensors_in(s, torch)) < 1 << 14]
    step = max(1, len(found) // SAMPLES)
    return found[::step][:SAMPLES]


def tensors_in(sample, torch):
    return [v for v in (sample.input, *sample.args, *sample.kwargs.values()) if isinstance(v, torch.Tensor)]


# --- damage -------------------------------------------------------------------------------------------------


class Damage:
    """One argument replaced by something near it that nobody should pass."""

    def __init__(self, rl, rng):
        self.rl, self.rng = rl, rng

    def chance(self, probability):
        return self.rng.random() < probability

    def anything(self):
        rl, pick = self.rl, self.rng.choice
        loop = [1.0]
        loop.append(loop)
        nest = []
        nest.append(nest)
        makers = (
            lambda: None,
            lambda: pick(HUGE),
            lambda: pick(SMALL),
            lambda: pick(FLOATS),
            lambda: pick((True, 1 + 2j, complex("nan"), "", "bogus", "\0", "é" * 300, b"x")),
            lambda: pick(
                ([], (), [None], [[]], [1, "a"], {}, {1: 2}, set(), [2**64] * 3, [-1] * 70, [1.5, 2])
            ),
            lambda: pick(
                (loop, nest, range(3), iter([1]), slice(None), slice(2**70), ..., object(), int, len)
            ),
            lambda: pick(
                (rl.float32, rl.bool, rl.complex64, rl.strided, rl.device("meta"), rl.channels_last)
            ),
            lambda: rl.zeros(pick(((), (0,), (1,), (2, 0, 3), (3, 3), (1,) * 70))),
            lambda: [rl.ones(2), rl.ones(3, dtype=rl.int64)],
            lambda: rl.zeros(3, device="meta"),
            lambda: [[1.0] * 3, [2.0] * pick((2, 3))],
        )
        return pick(makers)()

    def integer(self, value):
        near = (value + 1, value - 1, -value, value * 2, value + 0.5, float(value), str(value), bool(value))
        return self.rng.choice((self.rng.choice(HUGE), self.rng.choice(SMALL), self.rng.choice(near)))

    def sequence(self, value):
        changed = list(value)
        if changed and self.chance(0.6):
            at = self.rng.randrange(len(changed))
            changed[at] = self.damaged(changed[at])
        elif self.chance(0.2):
            changed.append(changed)
        elif self.chance(0.3):
            changed *= self.rng.choice((2, 40))
        elif self.chance(0.5):
            changed = changed[: len(changed) // 2]
        else:
            changed.insert(0, self.anything())
        return tuple(changed) if type(value) is tuple else changed

    def reshaped(self, t):
        rng = self.rng
        options = [
            lambda: t.unsqueeze(0),
            lambda: t.unsqueeze(-1),
            lambda: t.reshape(-1),
            lambda: t.new_zeros(()),
        ]
        if t.dim():
            at = rng.randrange(t.dim())
            options += [lambda: t.narrow(at, 0, 0), lambda: t.select(at, 0), lambda: t.sum(at, dtype=t.dtype)]
            options += [lambda: t.narrow(at, 0, 1), lambda: self.rl.cat([t, t], at), lambda: t.movedim(at, 0)]
            options += [lambda: t.unsqueeze(at).expand(*t.shape[:at], 3, *t.shape[at:])]
        return rng.choice(options)()

    def with_values(self, t):
        rng = self.rng
        if t.dtype == self.rl.bool or not t.numel():
            return ~t if t.dtype == self.rl.bool else t
        if t.is_floating_point() or t.is_complex():
            values = (math.nan, math.inf, -math.inf, 0.0, -1.0, 1e30)
        else:
            info = self.rl.iinfo(t.dtype)
            values = (info.max, info.min, 0, 100, info.max // 2)
        t = t.detach().clone()
        if self.chance(0.3):
            return t.fill_(rng.choice(values))
        t.view(-1)[rng.randrange(t.numel())] = rng.choice(values)
        return t

    def emptied(self, t):
        t = t.detach().clone()
        t.untyped_storage().resize_(0)
        return t

    def tensor(self, t):
        rl, rng = self.rl, self.rng
        other = lambda: t.detach().to(
            getattr(rl, rng.choice((*DTYPES, "complex128", "int8", "uint16", "uint64")))
        )
        options = (
            *[self.reshaped, self.with_values] * 3,
            *[lambda t: other()] * 3,
            lambda t: rng.choice(LAYOUTS)(rl, t.detach()),
            lambda t: t.detach().to("meta"),
            lambda t: t.detach().requires_grad_(not t.requires_grad),
            lambda t: t.detach().numpy(),
            lambda t: t.tolist(),
            lambda t: t.detach().to_sparse(),
            lambda t: t.conj(),
            self.emptied,
            lambda t: t.new_empty(0),
            lambda t: self.anything(),
        )
        return rng.choice(options)(t)

    def damaged(self, value):
        if self.chance(0.12):
            return self.anything()
        try:
            if isinstance(value, self.rl.Tensor):
                return self.tensor(value)
        except EXPECTED:
            return self.anything()
        if isinstance(value, bool):
            return self.rng.choice((not value, 2, None, "yes", -1))
        if isinstance(value, int):
            return self.integer(value)
        if isinstance(value, float):
            whole = int(value) if math.isfinite(value) else 0
            return self.rng.choice((self.rng.choice(FLOATS), -value, whole, str(value)))
        if isinstance(value, str):
            return self.rng.choice((value.upper(), value + "x", "", value * 40, "mean", "none", "sum"))
        if isinstance(value, (list, tuple)):
            return self.sequence(value)
        if isinstance(value, dict) and value and self.chance(0.7):
            at = self.rng.choice(list(value))
            return {**value, at: self.damaged(value[at])}
        if isinstance(value, slice):
            return slice(self.damaged(value.start or 0), value.stop, value.step)
        return self.anything()

    def call(self, args, kwargs):
        """The arguments with one or two damaged, sometimes left out or more than there are."""
        args, kwargs = list(args), dict(kwargs)
        for _ in range(self.rng.choice((1, 1, 2))):
            places = [*range(len(args)), *kwargs]
            if not places:
                break
            at = self.rng.choice(places)
            where = args if isinstance(at, int) else kwargs
            where[at] = self.damaged(where[at])
        if self.chance(0.03) and args:
            args.pop()
        elif self.chance(0.03):
            args.append(self.anything())
        elif self.chance(0.02):
            kwargs[self.rng.choice(("out", "dtype", "dim", "bogus", "generator", "input"))] = self.anything()
        return args, kwargs


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
