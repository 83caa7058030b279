"""Random programs beside PyTorch: ``python tests/fuzz/random_programs.py --programs 20000 --seed 1``.

A program has 5 to 40 statements: operators, views, writes in place, changes of dtype and layout, vmap,
gradients, autocast. It runs in PyTorch and here; values, dtypes, shapes, strides and gradients must agree, as
far as the program is stable: PyTorch runs it again with inputs moved by a rounding error, and what moves as
far tells nothing.

``--modes`` says how it runs here: ``eager`` and ``vmap`` (over three examples) are compared with PyTorch;
``compile``, ``dynamic`` (compiled for any sizes), ``export``, ``file`` (one file, run without Python),
``threads`` (two) and ``ranks`` (spread over two processes) with our own eager run.
What differs is made small and printed as a script. ``--list FILE`` keeps the differences as JSON lines.
"""

import argparse
import collections
import contextlib
import functools
import importlib
import io
import json
import linecache
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent)]
sys.path.append(str(ROOT))  # behind a build that the caller puts on the path

import limits  # noqa: E402
import program_parts as parts  # noqa: E402

MODES = ("eager", "vmap", "compile", "dynamic", "export", "file", "threads", "ranks")
# Refused by PyTorch's backward pass and not here: we save less, and losses of two dtypes have gradients.
STRICTER = re.compile("has been modified (by an inplace operation|inplace)|Found dtype")
# Refused here: sizes that depend on values in a graph; what PyTorch lets pass where there are no elements.
REFUSED = re.compile(
    "DynamicOutputShape|DataDependent|value out of a tracing tensor|depends on the values"
    "|does not require grad|writes to out=|functions with out=|output dynamic shape|utput size is too small"
    "|Kernel size can't be greater|CheckpointError"
    "|Padding_idx must be|Batch norm got a batched"
    "|single memory location|out of bounds for dimension . with size 0"
    "|invalid for input of size|but files return tensors"
    "|writes to its own tensor|must have the same dimension and dtype|any of the output memory|no pure form"
    "|out= of another shape|ctc_loss: expected labels"
    "|not implemented for .{1,2}(BFloat16|Half)|both operands to have the same dtype"
)
# Here PyTorch saves an alias without a version counter: its gradient is that of what was written since.
# Recurrent layers are one operator here, which saves what it reads.
UNSEEN_WRITE = re.compile(r"kron|linear|@|index_add_|einsum|tensordot|scaled_dot_product|_cell|lstm|gru|rnn_")
# What PyTorch says of its own mistakes.
BROKEN = re.compile(
    "returned an invalid gradient|INTERNAL ASSERT|report a bug|please report|file an issue|not implemented"
    "|NotImplementedError|pytorch/build|Sparse division requires|conversion from Sparse to Sparse"
    "|more than one element of the written-to|select.. cannot be applied to a 0-dim"
)
# PyTorch's rule for select_scatter counts negative dimensions from the wrong end; of several writes within
# functionalize, the first is done again.
WRONG_IN_VMAP = re.compile("select_scatter|functionalize")
# Tangents of tensors without dimensions have a wider dtype in PyTorch; second ones of products at zeros, and
# those of bounds that are met, are wrong there.
TANGENTS = re.compile(r"jvp|jacfwd|hessian|linearize")
WRONG_TANGENTS = re.compile(r"(jvp|jacfwd|hessian).*(cumprod|clamp)")
# Operators without a rule for DTensors, and what has none: errors, which tell what is missing.
REFUSED_BY_RANKS = re.compile(
    "NotImplementedError|DTensor|no rule|sharding|needed communication|cannot be resized|that is a sum"
)
# Whose results require gradients that are zeros, or of one operand of a list: PyTorch counts them all.
TRANSFORM = re.compile(r"torch.func|torch.vmap|create_graph|_foreach")
OTHER_LAYOUT = re.compile(
    r"fft|nonzero|linalg|torch.func|quantile|_scatter|\[torch.tensor|torch.vmap|cholesky|pow(__)?\(|logsigmoid"
)  # column by column in PyTorch (docs/differences.md)
BASE = {"float64": 1e-9, "float32": 2e-5, "float16": 3e-2, "bfloat16": 6e-2}


class Program:
    """Inputs (name, shape, dtype, whether it needs a gradient) and statements."""

    def __init__(self, inputs, lines):
        self.inputs, self.lines = inputs, lines
        self.source = parts.source(inputs, lines)
        text = self.source + str(inputs)
        levels = {
            "bfloat16": "bfloat16",
            "float16": r"\bfloat16|\.half\(",
            "float32": r"float32|complex64|int\d|\.float\(|\.item\(|torch\.tensor\(|> ",
        }
        self.precision = next((name for name, sign in levels.items() if re.search(sign, text)), "float64")

    def without_checkpoints(self):
        call = re.compile(
            r"torch\.utils\.checkpoint\.checkpoint\((lambda a: .*), (\w+), use_reentrant=False\)"
        )
        return Program(self.inputs, [call.sub(r"(\1)(\2)", line) for line in self.lines])

    def function(self, module):
        file = f"<program {id(self)} {module.__name__}>"
        linecache.cache[file] = len(self.source), None, self.source.splitlines(True), file
        space = {"torch": module, "F": module.nn.functional}
        importlib.import_module(module.__name__ + ".utils.checkpoint")
        exec(parts.HELPER, space)
        exec(compile(self.source, file, "exec"), space)
        return space["f"]

    def script(self, words):
        """The program as a text that can be run."""
        made = [
            f"{name}_in = {parts.leaf_text(shape, kind, grad)}" for name, shape, kind, grad in self.inputs
        ]
        call = f"print(f({', '.join(name + '_in' for name, *_ in self.inputs)}))"
        seeded = f"torch.manual_seed({len(self.inputs)})"
        return "\n".join([f"# {words}", parts.HEAD + self.source, seeded, *made, call])


def leaves(module, program, batch=(), moved=False):
    made = list(parts.leaf_tensors(module, program.inputs, batch))
    if moved:
        size = {"float64": 1e-13, "float32": 1e-6}.get(program.precision, 1e-2)
        for i, (name, t) in enumerate(made):
            if not (t.is_floating_point() or t.is_complex()):
                continue
            shifted = (t.detach() * (1 + size * module.randn(t.shape))).to(t.dtype)
            made[i] = name, shifted.requires_grad_(t.requires_grad)
    return [t for _, t in made]


def plain(value):
    """What is compared of a value."""
    if not hasattr(value, "detach"):
        return type(value).__name__, (), (), False, [value] if isinstance(value, (int, float)) else []
    numbers = value.detach()
    dtype = str(value.dtype).removeprefix("torch.")
    if value.is_complex():
        numbers = sys.modules[type(value).__module__.split(".")[0]].view_as_real(numbers.resolve_conj())
    numbers = numbers.double() if numbers.is_floating_point() else numbers.long()
    try:
        listed = numbers.flatten().tolist()
    except RuntimeError:  # what a transform left without memory
        listed = []
    return dtype, tuple(value.shape), tuple(value.stride()), value.requires_grad, listed


def finished(module, f, args, weighted=True):
    """The results of a call and the gradients of what was given; of an error its class."""
    try:
        results = f(*args) if weighted else f()(*args)
        results = results if isinstance(results, (tuple, list)) else (results,)  # a file's only one
    except Exception as error:
        return "raises", type(error).__name__, str(error)
    found = [plain(v) for v in results]
    wanted = {i: v for i, v in enumerate(results) if hasattr(v, "detach") and v.requires_grad}
    if wanted and weighted:
        try:
            sum((real(module, v) * (0.5 + i % 3)).sum() for i, v in wanted.items()).backward()
        except Exception as error:
            return *found, ("backward raises", type(error).__name__, str(error))
        found += [plain(a.grad) for a in args]
    return tuple(found)


def real(module, value):
    """What a loss adds up: doubles, of which imaginary parts count half."""
    if not value.is_complex():
        return value.double()
    halves = module.tensor([1.0, 0.5], dtype=module.float64)
    return module.view_as_real(value.resolve_conj()).double() * halves


def outcome(module, program, mode="eager", moved=False):
    """What a program gives in a mode."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        module.default_generator.manual_seed(0)
        f = program.function(module)
        if mode == "vmap":
            args = leaves(module, program, batch=(3,), moved=moved)
            return finished(module, module.vmap(f), args)
        args = leaves(module, program, moved=moved)
        if mode in ("compile", "dynamic"):
            module._dynamo.reset()
            compiled = module.compile(f, dynamic=mode == "dynamic" or None)
            for _ in range(3):  # the graph runs from the second call on
                args = leaves(module, program)
                result = finished(module, compiled, args)
            return result
        if mode in ("export", "file"):
            return finished(module, lambda: exported(module, f, args, mode), args, weighted=False)
        if mode == "threads":
            before = module.get_num_threads()
            module.set_num_threads(2)
            try:
                return finished(module, f, args)
            finally:
                module.set_num_threads(before)
        return finished(module, f, args)


def exported(module, f, args, mode):
    """The program exported, as a module or read back from one file."""

    class Whole(module.nn.Module):
        def forward(self, *given):
            return f(*given)

    args = tuple(a.detach() for a in args)
    if mode == "export":
        return module.export.export(Whole(), args).module()
    from rushlight.export import load_file, save_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.rl"
        save_file(Whole(), str(path), args)
        return load_file(str(path))


def distance(first, second):
    """The largest difference of two lists of numbers."""
    return max((abs(a - b) for a, b in zip(first, second)), default=0)


def unlike(ours, theirs, moved, program, mode):
    """None, or in words how two outcomes differ."""
    if ours[:1] == ("raises",) and re.search(REFUSED, str(ours)):
        return None
    if "view size is not compatible" in str(ours) and OTHER_LAYOUT.search(program.source):
        return None
    if theirs[:1] == ("raises",) or ours[:1] == ("raises",):
        if theirs[:1] == ours[:1]:
            return None
        who, error = ("", ours) if ours[0] == "raises" else ("does not raise, but wanted is ", theirs)
        return f"{who}{error[1]}: {error[2].splitlines()[0][:200] if error[2] else ''}"
    if theirs[-1][0] == "backward raises" and STRICTER.search(theirs[-1][2]):
        return None
    if (
        ours[-1][0] == "backward raises"
        and STRICTER.search(ours[-1][2])
        and UNSEEN_WRITE.search(program.source)
    ):
        return None
    if len(ours) != len(theirs) and "create_graph" not in program.source:
        return f"{len(ours)} results for {len(theirs)}: {ours[-1][:3]} for {theirs[-1][:3]}"
    for i, (mine, other) in enumerate(zip(ours, theirs)):
        if "raises" in str(mine[0]) or "raises" in str(other[0]):
            if mine[0] != other[0]:
                return f"result {i}: {mine[:3]} for {other[:3]}"
            continue
        if mine[:2] != other[:2]:
            if mine[1] == other[1] == () and TANGENTS.search(program.source):
                continue
            return f"result {i}: {mine[:2]} for {other[:2]}"
        if mode == "eager" and strides(mine) != strides(other) and not OTHER_LAYOUT.search(program.source):
            return f"result {i}: strides {mine[2]} for {other[2]} of {other[1]}"
        if mode not in ("export", "file") and mine[3] != other[3] and not TRANSFORM.search(program.source):
            return f"result {i}: requires_grad {mine[3]} for {other[3]}"
        if len(moved) < len(theirs) or moved[i][:2] != other[:2]:
            continue
        if mode == "eager" and WRONG_TANGENTS.search(program.source):
            continue
        scale = max([1.0, *(abs(v) for v in other[4] if abs(v) < 1e30)])
        drift = distance(other[4], moved[i][4])
        if drift != drift or drift > 1e-2 * scale:
            continue
        tolerance = BASE[program.precision] * scale + 100 * drift
        for a, b in zip(mine[4], other[4]):
            if not (a == b or (a != a and b != b) or abs(a - b) <= tolerance):
                return f"result {i}: value {a} for {b} (tolerance {tolerance:.1e})"
    return None


def strides(leaf):
    """Those that matter: of more than one element along their dimension."""
    return [(d, s) for d, s in enumerate(leaf[2]) if leaf[1][d] > 1] if 0 not in leaf[1] else []


def difference(program, mode):
    """None, or how the program differs in that mode; None too where PyTorch refuses it."""
    import torch

    import rushlight

    note("torch")
    how = "vmap" if mode == "vmap" else "eager"
    # PyTorch's checkpoints cannot compute anew what ran within vmap.
    known = program.without_checkpoints() if mode == "vmap" else program
    reference = outcome(torch, known, how)
    if mode == "vmap" and (reference[:1] == ("raises",) or WRONG_IN_VMAP.search(program.source)):
        return None
    if BROKEN.search(str(reference[-1])):
        return None
    program.precision = coarsest(program, reference)
    moved = [outcome(torch, known, how, moved=True) for _ in range(2)]
    if any(m[:1] == ("raises",) for m in moved):
        return None
    moved = furthest(reference, *moved)
    note("rushlight")
    if mode in ("eager", "vmap"):
        ours = outcome(rushlight, program, mode)
        if mode == "vmap" and known.lines != program.lines and "backward raises" in str(ours[-1][0]):
            return None  # nor can ours, where what was saved differs by the examples
        if (
            mode == "vmap"
            and STRICTER.search(str(ours[-1]))
            and STRICTER.search(str(outcome(torch, known)[-1]))
        ):
            return None  # PyTorch's vmap lets pass what its backward pass refuses without
        return unlike(ours, reference, moved, program, mode)
    own = outcome(rushlight, program)
    if own[:1] == ("raises",) or len(own) != len(reference):
        return None
    if mode == "ranks":
        ours = ranks().outcome(program)
        last = ours if ours[0] == "raises" else ours[-1]
        return None if REFUSED_BY_RANKS.search(str(last)) else unlike(ours, own, moved, program, mode)
    if mode in ("export", "file"):  # without gradients
        count = program.source.rsplit("return ", 1)[1].count(",")
        own, reference = own[:count], reference[:count]
    if len(moved) >= len(own):  # how far a rounding error moves it, around our own values
        moved = tuple(around(*leaves) for leaves in zip(own, reference, moved))
    return unlike(outcome(rushlight, program, mode), own, moved, program, mode)


def coarsest(program, leaves):
    """The precision of the program, which may have results coarser than its text says."""
    order = list(BASE)
    known = {"complex64": "float32", "complex128": "float64"}
    found = [known.get(leaf[0], leaf[0]) for leaf in leaves]
    return max([program.precision, *(kind for kind in found if kind in BASE)], key=order.index)


@functools.cache
def ranks():
    import program_ranks

    return program_ranks.Ranks()


def furthest(reference, first, second):
    """Of two moved runs, for each result the one that is further away."""
    if not len(reference) == len(first) == len(second):
        return first
    far = lambda leaf, other: distance(leaf[4], other[4]) if len(leaf) == len(other) == 5 else 0
    return tuple(b if far(b, r) > far(a, r) else a for r, a, b in zip(reference, first, second))


def around(own, reference, moved):
    if not len(own) == len(reference) == len(moved) == 5 or not own[:2] == reference[:2] == moved[:2]:
        return moved
    return *own[:4], [o + abs(m - r) for o, r, m in zip(own[4], reference[4], moved[4])]


def shrunk(program, mode, attempts=150):
    """The program with as few statements and inputs as still differ."""
    progress = True
    while progress and attempts > 0:
        progress = False
        for i in reversed(range(len(program.lines))):
            attempts -= 1
            if attempts <= 0:
                break
            smaller = Program(program.inputs, program.lines[:i] + program.lines[i + 1 :])
            if runs(smaller) and difference(smaller, mode):
                program, progress = smaller, True
    text = "\n".join(program.lines)
    used = [one for one in program.inputs if re.search(rf"\b{one[0]}\b", text)]
    smaller = Program(used, program.lines)
    return smaller if used and runs(smaller) and difference(smaller, mode) else program


def runs(program):
    import torch

    try:
        parts.run(torch, program.inputs, program.lines)
        return True
    except (*parts.REFUSALS, NameError):
        return False


def made(seed, modes=""):
    import torch

    rng = random.Random(seed)
    length = rng.choice([5, 8, 12, 20, 40])
    # An exported graph holds no sparse or nested tensors of its own: how much they list depends on values.
    # No program records gradients within an exported one.
    left_out = ("layouts", "gradients") if {"export", "file"} & set(modes.split(",")) else ()
    writer = parts.Writer(torch, seed, length, left_out)
    return Program(writer.inputs, writer.lines)


def note(library):
    """Who is at work, for the report of a crash; a worker replaces this."""


def work(options):
    """Run programs in this process; lines of JSON tell what was found."""
    global note
    import torch

    torch.set_num_threads(1)
    limits.limit_memory()
    deadline = time.monotonic() + (options.seconds or 1e9)
    counts = collections.Counter()
    with open(options.progress, "w") as progress:

        def note(library):
            progress.seek(0)
            progress.write(f"{index} {library:9} {mode:9}\n")
            progress.flush()
            limits.start_clock()

        mode = "make"
        for index in range(options.first, options.programs):
            if time.monotonic() > deadline:
                break
            note("torch")
            program = made(f"{options.seed}/{index}", options.modes)
            counts["programs"] += 1
            counts["statements"] += len(program.lines)
            for mode in options.modes.split(","):
                counts[mode] += 1
                words = difference(program, mode)
                if words:
                    small = program if words.startswith("Parted") else shrunk(program, mode)
                    if small is not program:
                        words = difference(small, mode) or words
                    entry = {"seed": f"{options.seed}/{index}", "mode": mode, "words": words}
                    print(
                        json.dumps(entry | {"script": small.script(words), "last": small.lines}), flush=True
                    )
            mode = "make"
            if counts["programs"] % 50 == 0:
                print(json.dumps({"counts": counts}), flush=True)
                counts.clear()
    print(json.dumps({"counts": counts}), flush=True)


def supervise(options):
    """Run a worker, and another after each crash; print every kind of difference once."""
    index, found, totals = 0, [], collections.Counter()
    deadline = time.monotonic() + (options.seconds or 1e9)
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "program"
        while index < options.programs and time.monotonic() < deadline:
            command = [
                sys.executable,
                __file__,
                "--worker",
                "--progress",
                str(progress),
                "--first",
                str(index),
            ]
            command += ["--seed", options.seed, "--modes", options.modes, "--programs", str(options.programs)]
            command += ["--seconds", str(deadline - time.monotonic())] if options.seconds else []
            worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
            for line in worker.stdout:
                entry = json.loads(line)
                totals.update(entry.get("counts", {}))
                if "seed" in entry:
                    found.append(entry)
                    if options.list:
                        with open(options.list, "a") as kept:
                            kept.write(line)
            status = worker.wait()
            if status > 0:
                sys.exit(f"the worker failed ({status}): {progress.read_text()}")
            if status == 0:
                break
            number, library, mode = progress.read_text().split()
            index = int(number) + 1
            if library == "rushlight":
                words = f"the process ended with {worker.returncode}"
                seed = f"{options.seed}/{number}"
                found.append(
                    {
                        "seed": seed,
                        "mode": mode,
                        "words": words,
                        "script": made(seed, options.modes).script(words),
                    }
                )
    kinds = {}
    for entry in found:
        last = (entry.get("last") or [""])[-1].split("(")[0]
        kinds.setdefault((entry["mode"], re.sub(r"[\d.e+-]+", "", entry["words"])[:60], last), entry)
    for entry in kinds.values():
        print(f"--- {entry['mode']}, program {entry['seed']}\n{entry['script']}\n")
    ran = ", ".join(f"{mode}: {totals[mode]}" for mode in options.modes.split(","))
    print(f"{totals['programs']} programs, {totals['statements']} statements ({ran}), {len(found)} differ")
    return 1 if found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--modes", default="eager", help="of " + ", ".join(MODES))
    parser.add_argument("--list", help="append the differences to this file")
    parser.add_argument("--program", help="SEED/NUMBER: show one program and how it differs")
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        program = made(options.program, options.modes)
        words = {mode: difference(program, mode) or "no difference" for mode in options.modes.split(",")}
        print(program.script(words))
        return 0
    return work(options) if options.worker else supervise(options)


if __name__ == "__main__":
    sys.exit(main())
