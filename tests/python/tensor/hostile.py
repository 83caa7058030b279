"""Calls every operator with arguments that nobody should pass, in child processes of the test of that name.

python tests/python/tensor/hostile.py --cases 1000 --seed 7 --only conv    # longer, goes on after a crash

A call may succeed or raise one of ``ALLOWED``. It may not end the process, hang, fail an internal check, keep
memory, read past the end of an argument, or return a tensor that reaches beyond its storage. The call in
progress lies in a file, where the parent finds it.
"""

import argparse
import faulthandler
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import fenced_memory
import recorded_calls

ALLOWED = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)
SECONDS_PER_CALL = 10  # of the processor: a timer ends the process with SIGPROF, also inside of a kernel
SPARE_MEMORY = 1 << 30
# Sizes between those of tests and those that no memory holds are left out: they are slow, not hostile.
HUGE = [2**31 - 1, 2**31, 2**32 + 1, 2**40, 2**62, 2**63 - 1, -(2**31), -(2**63), -(2**63) + 1, 2**64, -1000]
SMALL = [-3, -2, -1, 0, 0, 1, 1, 1, 2, 2, 3, 5]
FLOATS = [0.0, 1.0, -1.0, 0.5, 2.0, 1e-8, 1e30, -1e308, math.inf, -math.inf, math.nan]
WORDS = [
    "mean",
    "sum",
    "none",
    "L",
    "U",
    "reduced",
    "complete",
    "fro",
    "nuc",
    "tanh",
    "constant",
    "reflect",
    "same",
]
WORDS += [
    "replicate",
    "circular",
    "valid",
    "amax",
    "prod",
    "ij,jk->ik",
    "ij,jk",
    "...i->i",
    "i->ij",
    "floor",
    "trunc",
]
WORDS += ["", "bogus", "ij->" + "i" * 80, "\0", "é"]
SHAPES = [
    (),
    (0,),
    (1,),
    (3,),
    (2, 3),
    (3, 3),
    (0, 3),
    (3, 0),
    (1, 3),
    (4, 1),
    (2, 3, 4),
    (2, 1, 4),
    (2, 3, 3),
]
SHAPES += [(1, 2, 5, 5), (2, 3, 4, 5), (0, 2, 3, 3), (1, 2, 3, 4, 4), (2, 1, 2, 1, 2, 1)]
SHAPES += [(2**40, 0)]  # no memory, and more rows than memory has room for
DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float8_e4m3fn float16 bfloat16 float32 float64"
)
DTYPES = DTYPES.split() + ["complex64", "complex128"]


class Maker:
    """Random arguments for one call, whose tensors tend to share shape and dtype, so that some calls run."""

    def __init__(self, rl, rng):
        self.rl, self.rng = rl, rng
        self.shape = rng.choice(SHAPES)
        self.dtype = rng.choice(["float32", "float32", "float64", "int64", "complex64", rng.choice(DTYPES)])

    def chance(self, probability):
        return self.rng.random() < probability

    def integer(self):
        return self.rng.choice(HUGE) if self.chance(0.15) else self.rng.choice(SMALL)

    def number(self):
        kinds = [lambda: self.rng.choice(FLOATS), self.integer, lambda: True, lambda: complex(1, -2)]
        return self.rng.choice(kinds)()

    def some_shape(self):
        if self.chance(0.6):
            return self.shape
        if self.chance(0.3) and self.shape:
            return self.shape[1:] if self.chance(0.5) else self.shape[::-1]
        return self.rng.choice(SHAPES)

    def values(self, dtype, count, indices):
        pick = self.rng.choice
        if dtype == "bool":
            return [self.chance(0.5) for _ in range(count)]
        if "int" in dtype:
            low = 0 if dtype[0] == "u" else -1
            values = [self.rng.randint(low if self.chance(0.2) else 0, 3) for _ in range(count)]
            if values and self.chance(0.1 if indices else 0.3):
                bits = 31 if "32" in dtype else 7 if "8" in dtype else 15 if "16" in dtype else 63
                values[self.rng.randrange(count)] = pick([2**bits - 1, low * 2**bits, 100])
            return values
        values = [self.rng.uniform(-2, 2) for _ in range(count)]
        if values and self.chance(0.15):
            values[self.rng.randrange(count)] = pick([math.nan, math.inf, -math.inf, 0.0, 1e30])
        return values

    def tensor(self, name=""):
        rl = self.rl
        indices = bool(re.search("ind|target|offset|length|repeat|bound|bucket|pivot", name))
        mask = bool(re.search("mask|condition", name))
        dtype = "bool" if mask else "int64" if indices else self.dtype
        if self.chance(0.12):
            dtype = self.rng.choice(DTYPES)
        shape = self.some_shape()
        t = rl.tensor(self.values(dtype, math.prod(shape), indices), dtype=getattr(rl, dtype)).reshape(shape)
        t = self.rng.choice(LAYOUTS)(rl, t) if self.chance(0.35) else t
        if dtype in ("float32", "float64", "complex64") and self.chance(0.3):
            t.requires_grad_()
        return t.to("meta") if self.chance(0.02) else t

    def nonsense(self):
        values = [
            None,
            "bogus",
            1.5,
            -1,
            2**70,
            [],
            [None],
            {},
            object(),
            (1, "a"),
            self.rl.float32,
            [[1], [2, 3]],
        ]
        return self.rng.choice([*values, self.tensor(), [self.tensor()], range(3), slice(None)])

    def value(self, kind, name):
        """A value for a parameter of the schema's type `kind`."""
        if self.chance(0.04):
            return self.nonsense()
        if kind.endswith("?") and self.chance(0.3):
            return None
        kind = kind.rstrip("?")
        if match := re.fullmatch(r"(\w+)\??\[(\d*)\]", kind):
            if match[2] and self.chance(0.4):
                return self.value(match[1], name)
            count = int(match[2]) if match[2] and self.chance(0.8) else self.rng.randint(0, 4)
            return [self.value(match[1], name) for _ in range(count)]
        makers = {
            "Tensor": lambda: self.tensor(name),
            "Scalar": self.number,
            "int": self.integer,
            "SymInt": self.integer,
            "float": lambda: self.rng.choice(FLOATS),
            "bool": lambda: self.chance(0.5),
            "str": lambda: self.rng.choice(WORDS),
            "ScalarType": lambda: getattr(self.rl, self.rng.choice(DTYPES)),
            "Device": lambda: self.rng.choice(["cpu", "meta", "cuda:0", "cpu:7", "bogus"]),
            "Layout": lambda: self.rl.strided,
            "MemoryFormat": lambda: self.rng.choice(
                [
                    self.rl.contiguous_format,
                    self.rl.preserve_format,
                    self.rl.channels_last,
                    self.rl.channels_last_3d,
                ]
            ),
            "Generator": lambda: self.rl.Generator(),
        }
        return makers.get(kind, self.nonsense)()

    def mutated(self, value, name):
        """Something hostile in place of a valid value, mostly of its kind."""
        if self.chance(0.1):
            return self.nonsense()
        if isinstance(value, self.rl.Tensor):
            return self.tensor(name)
        if isinstance(value, bool):
            return self.rng.choice([not value, 2, None])
        if isinstance(value, int):
            return self.integer()
        if isinstance(value, float):
            return self.rng.choice(FLOATS)
        if isinstance(value, str):
            return self.rng.choice(WORDS)
        if isinstance(value, (list, tuple)):
            changed = list(value)
            if changed and self.chance(0.7):
                at = self.rng.randrange(len(changed))
                changed[at] = self.mutated(changed[at], name)
            elif self.chance(0.5):
                changed += changed or [self.integer()]
            else:
                changed = changed[1:]
            return type(value)(changed) if type(value) in (list, tuple) else changed
        return self.nonsense()


def _reversed(rl, t):
    return t.flip(0).contiguous()[::-1] if t.dim() else t


def _gaps(rl, t):
    wide = rl.zeros(*t.shape, 2, dtype=t.dtype)
    wide[..., 0] = t
    return wide[..., 0]


def _repeated(rl, t):
    return t[:1].expand(t.shape) if t.dim() and t.shape[0] else t


def _later(rl, t):
    return rl.cat([t.new_zeros(3), t.reshape(-1)])[3:].reshape(t.shape)


LAYOUTS = [lambda rl, t: t.transpose(0, -1) if t.dim() else t, _reversed, _gaps, _repeated, _later]


def parameters(schema):
    """[(type, name, has a default, keyword only)] of a schema's parameters."""
    inside = re.search(r"\((.*)\) ->", schema)[1]
    result, keyword_only = [], False
    for part in re.split(r", (?![^\[(]*[\])])", inside) if inside else []:
        if part == "*":
            keyword_only = True
            continue
        declared, _, default = part.partition("=")
        kind, _, name = declared.rpartition(" ")
        kind = re.sub(r"\([a-z]!\)", "", kind)
        result.append((kind, name, bool(default), keyword_only))
    return result


def spaces(rl):
    return {"": rl, "nn": rl._C._nn, "linalg": rl._C._linalg, "special": rl._C._special, "fft": rl._C._fft}


def call_of_record(rl, record, maker):
    """(text, function, args, kwargs) made from the schema alone."""
    args, kwargs = [], {}
    for kind, name, optional, keyword_only in parameters(record["schema"]):
        if optional and maker.chance(0.5):
            keyword_only = True
            continue
        if keyword_only or (kwargs and optional):
            kwargs[name] = maker.value(kind, name)
        elif not kwargs:
            args.append(maker.value(kind, name))
    return call_form(rl, record, maker, args, kwargs)


def operator_of(rl, record):
    """What a program calls for a record: a function, a method, or the operator itself."""
    if record["function"]:
        return getattr(spaces(rl)[record["space"]], record["name"])
    if record["method"]:
        return getattr(rl.Tensor, record["name"])
    packet = getattr(getattr(rl.ops, record["space"] or "aten"), record["name"])
    return getattr(packet, record["overload"] or "default")


def call_form(rl, record, maker, args, kwargs):
    name, function = record["name"], operator_of(rl, record)
    public = record["function"] or record["method"]
    if record["inplace"] and maker.chance(0.2) and hasattr(rl.Tensor, name + "_"):
        name, function = name + "_", getattr(rl.Tensor, name + "_")
    elif public and record["out"] and maker.chance(0.15):
        count = record["schema"].rpartition("->")[2].count("Tensor")
        kwargs["out"] = maker.tensor() if count == 1 else tuple(maker.tensor() for _ in range(count))
    return f"{record['space']}.{name}", function, args, kwargs


def call_of_row(rl, engine, row, maker):
    """(text, function, args, kwargs): a valid call from the rows with one or two arguments replaced."""
    dtype = maker.rng.choice(row.dtypes)
    sample = maker.rng.choice(list(row.samples(engine.maker(row, dtype))))
    args, kwargs = engine.arguments(rl, sample, dtype)
    args, kwargs = list(args), dict(kwargs)
    for _ in range(maker.rng.randint(1, 2)):
        at = maker.rng.choice([*range(len(args)), *kwargs])
        where = args if isinstance(at, int) else kwargs
        where[at] = maker.mutated(where[at], "")
    return row.name, engine.resolve(rl, row.name), args, kwargs


def call_of_recording(rl, calls, maker):
    """The same, made from calls that other operators made."""
    record, args, kwargs = recorded_calls.call_from(maker, calls)
    return f"{record['space']}.{record['name']}", operator_of(rl, record), args, kwargs


def describe(rl, value):
    if isinstance(value, rl.Tensor):
        place = "" if value.device.type == "cpu" else f", {value.device}"
        content = value.tolist() if 0 < value.numel() <= 24 and not place else ""
        grad = ", requires_grad" if value.requires_grad else ""
        layout = f"strides {value.stride()}{grad}{place}"
        return f"tensor({list(value.shape)}, {value.dtype}, {layout}) {content}".rstrip()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(describe(rl, v) for v in value) + "]"
    return repr(value)


def check_result(rl, value):
    """Reads each result once and looks at where its memory ends."""
    if isinstance(value, (list, tuple)):
        for item in value[:64]:
            check_result(rl, item)
    elif isinstance(value, rl.Tensor) and value.layout != rl.strided:
        parts = ["_indices"] if value.is_sparse else []
        check_result(rl, [getattr(value, part)() for part in [*parts, "_values"]])
    elif isinstance(value, rl.Tensor) and value.device.type == "cpu" and value.numel():
        reach = [(n - 1) * s for n, s in zip(value.shape, value.stride())]
        low = value.storage_offset() + sum(r for r in reach if r < 0)
        high = value.storage_offset() + sum(r for r in reach if r > 0)
        bytes_there = value.untyped_storage().nbytes()
        if low < 0 or (high + 1) * value.element_size() > bytes_there:
            raise AssertionError(f"elements {low} to {high} of {value.dtype} in {bytes_there} bytes")
        if value.numel() < 1 << 22:
            value.detach().clone()


def backward(rl, value):
    leaves = [v for v in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(v, rl.Tensor)]
    leaves = [v for v in leaves if v.requires_grad and v.device.type == "cpu" and v.numel() < 1 << 22]
    if leaves:
        rl.autograd.backward(leaves, [rl.ones_like(v) for v in leaves])


def subjects(rl, only, internal):
    """(name, function making a call from a Maker) of every public record and row, or of other records."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))
    import engine
    import loader

    found = []
    for record in rl._C._operator_records():
        if bool(record["function"] or record["method"]) != internal:
            make = lambda maker, record=record: call_of_record(rl, record, maker)
            found.append((record["schema"], make))
    for row in [] if internal else loader.ROWS:
        found.append((f"row {row.name}", lambda maker, row=row: call_of_row(rl, engine, row, maker)))
    if internal:
        records = [r for r in rl._C._operator_records() if not (r["function"] or r["method"])]
        for name, calls in recorded_calls.recorded(rl, engine, loader.ROWS, records).items():
            found.append((f"call {name}", lambda maker, calls=calls: call_of_recording(rl, calls, maker)))
    return [(name, make) for name, make in found if re.search(only, name)]


def memory_used():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def limit_memory():
    used = memory_used()
    if used < 1 << 38:  # the address sanitizer maps terabytes; it has an option of its own
        resource.setrlimit(resource.RLIMIT_AS, (used + SPARE_MEMORY,) * 2)


def run_case(rl, name, make, seed, case, log):
    """One call; returns a finding or None."""
    maker = Maker(rl, random.Random(f"{seed} {name} {case}"))
    text, before = name, memory_used()
    try:
        text, function, args, kwargs = make(maker)
        if maker.chance(0.5):
            args = fenced_memory.in_fences(rl, args)
            kwargs = {key: fenced_memory.in_fences(rl, value) for key, value in kwargs.items()}
        words = [describe(rl, a) for a in args] + [f"{k}={describe(rl, v)}" for k, v in kwargs.items()]
        text = f"{text}({', '.join(words)})"
        log(text)
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_CALL)
        result = function(*args, **kwargs)
        check_result(rl, result)
        if maker.chance(0.5):
            log("backward of " + text)
            backward(rl, result)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if (seconds := time.process_time() - started) > SECONDS_PER_CALL / 2:
            return f"{seconds:.0f} s: {text}"
    except ALLOWED as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        if "INTERNAL" in str(error) or "internal check" in str(error):
            return f"{type(error).__name__}: {error}\n  {text}"
        if (kept := memory_used() - before) > SPARE_MEMORY / 4:  # what precedes a refusal needs no memory
            return f"{kept >> 20} MB are kept after {error}\n  {text}"
    except Exception as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        # PyTorch's AssertionErrors: of devices, and of operators of decomposed quantization
        if "not compiled with CUDA" in str(error) or (
            type(error) is AssertionError and name.startswith("quantized_decomposed::") and str(error)
        ):
            return None
        return f"{type(error).__name__}: {error}\n  {text}"
    return None


def child(options):
    import rushlight as rl

    faulthandler.enable()
    warnings.simplefilter("ignore")
    rl.set_num_threads(1)
    mine = subjects(rl, options.only, options.internal)[options.part :: options.parts]
    rl.ones(64, 64) @ rl.ones(64, 64)
    limit_memory()
    progress = os.open(options.progress, os.O_RDWR)

    def log_for(at):
        def log(text):
            line = f"{at}\n{text[:4000]}\n".encode()
            os.pwrite(progress, line + b"\0" * (4200 - len(line)), 0)

        return log

    at = 0
    for name, make in mine:
        for case in range(options.cases):
            if at >= options.start and (finding := run_case(rl, name, make, options.seed, case, log_for(at))):
                print("FOUND", finding.replace("\n", "\n      "), flush=True)
            at += 1
    print("DONE", at, flush=True)


def run(cases, seed, only="", part=0, parts=1, timeout=None, internal=False):
    """Runs a part of all cases, anew after each crash. Returns (number of calls, findings)."""
    findings, start = [], 0
    options = ["--cases", cases, "--seed", seed, "--only", only, "--part", part, "--parts", parts]
    options += ["--internal"] if internal else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    # Without fresh memory the address sanitizer answers like malloc.
    environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":max_allocation_size_mb=1024"
    with tempfile.NamedTemporaryFile() as progress:
        while True:
            command = [sys.executable, __file__, "--progress", progress.name, "--start", start, *options]
            ended = subprocess.run(
                [str(w) for w in command], env=environment, capture_output=True, text=True, timeout=timeout
            )
            findings += re.findall(r"^FOUND (.*(?:\n      .*)*)", ended.stdout, re.M)
            if done := re.search(r"^DONE (\d+)$", ended.stdout, re.M):
                return int(done[1]), findings
            where, _, call = (
                Path(progress.name).read_bytes().rstrip(b"\0").decode(errors="replace").partition("\n")
            )
            status = f"exit status {ended.returncode}"
            if ended.returncode < 0:
                status = signal.Signals(-ended.returncode).name
            tail = "\n      ".join(ended.stderr.strip().splitlines()[:30])
            findings.append(f"{status} in {call.strip()}\n      {tail}")
            if not where or len(findings) > 50:
                return start, findings
            start = int(where) + 1


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=100, help="calls for each record and each row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="regular expression for schemas and `row NAME`")
    parser.add_argument("--internal", action="store_true", help="operators that torch.ops alone names")
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.progress:
        return child(options)
    calls, findings = run(
        options.cases, options.seed, options.only, options.part, options.parts, internal=options.internal
    )
    print(*findings, f"{calls} calls, {len(findings)} findings", sep="\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
