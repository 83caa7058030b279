"""Differential fuzzing of the operators against PyTorch.

    PYTHONPATH=. python tests/fuzz/run.py --cases 200000 --seed 1

A case is an operator's sample row with other dtypes, layouts, sizes and values. A difference is printed as
the smallest program that shows it; what docs/differences.md explains is counted and fails nothing.
"""

import argparse
import collections
import json
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # behind a build that the caller puts on the path

import cases  # noqa: E402
import limits  # noqa: E402
from engine import dtype_name, flatten, resolve  # noqa: E402

import rushlight  # noqa: E402

EXPLAINED = ROOT / "docs" / "differences.md"
TOLERANCE = {
    "float16": (5e-3, 5e-3),
    "bfloat16": (4e-2, 4e-2),
    "float32": (1e-4, 1e-5),
    "complex64": (1e-4, 1e-5),
    "float64": (1e-7, 1e-8),
    "complex128": (1e-7, 1e-8),
}
ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError, OverflowError)


def outcome(module, case):
    """The results' leaves as (dtype, shape, array), or the exception."""
    try:
        args = cases.tensors(module, case.args)
        result = resolve(module, case.name)(
            *args, **{k: cases.tensors(module, v) for k, v in case.kwargs.items()}
        )
        return [leaf(v) for v in flatten(result)]
    except ERRORS as error:
        return error


def leaf(value):
    if not hasattr(value, "detach"):
        return (type(value).__name__, (), np.asarray(value))
    dense = value.detach()
    kind, shape = dtype_name(dense), tuple(dense.shape)
    if kind in ("bfloat16", "float16"):
        dense = dense.float()
    return (kind, shape, np.array(dense.tolist()).reshape(shape))


def note(library):
    """Who is at work, for the report of a crash; a worker replaces this."""


def difference(case):
    """What tells the libraries apart, in words; None where they agree or PyTorch refuses the case."""
    import torch

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        note("rushlight")
        ours = outcome(rushlight, case)
        note("torch")
        theirs = outcome(torch, case)
        note("")
    if isinstance(theirs, Exception):
        return None
    if isinstance(ours, Exception):
        return f"raises {type(ours).__name__}: {str(ours).splitlines()[0] if str(ours) else ''}"
    if len(ours) != len(theirs):
        return f"{len(ours)} results, PyTorch has {len(theirs)}"
    words = (unlike(mine, other) for mine, other in zip(ours, theirs))
    return next((f"result {i}: {text}" for i, text in enumerate(words) if text), None)


def unlike(ours, theirs):
    """What tells two leaves apart."""
    (kind, shape, values), (their_kind, their_shape, their_values) = ours, theirs
    if kind != their_kind:
        return f"dtype {kind}, PyTorch has {their_kind}"
    if shape != their_shape:
        return f"shape {shape}, PyTorch has {their_shape}"
    rtol, atol = TOLERANCE.get(kind, (0, 0))
    finite = their_values[np.isfinite(their_values)] if their_values.dtype.kind in "fc" else np.zeros(0)
    scale = float(np.abs(finite).max(initial=1))
    if np.allclose(values, their_values, rtol=rtol, atol=atol * scale, equal_nan=True):
        return None
    mine, other = (np.array2string(v, threshold=8) for v in (values, their_values))
    return f"values {mine}, PyTorch has {other}"


def explanations():
    """(operator pattern, difference pattern) of each row of the first table in docs/differences.md."""
    found = []
    for line in EXPLAINED.read_text().split("\n## ")[0].splitlines():
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and cells[0].startswith("`"):
            found.append(tuple(re.compile(c.strip("`").replace("\\|", "|"), re.DOTALL) for c in cells[:2]))
    return found


def kinds(value):
    if isinstance(value, cases.Operand):
        return [f"{value.dtype}/{value.layout}"]
    return [k for v in value for k in kinds(v)] if isinstance(value, (list, tuple)) else []


def is_explained(case, words, known):
    """The second pattern is searched in the operands' dtypes and layouts and the difference's words."""
    told = f"{' '.join(kinds(list(case.args)))}: {words}"
    return any(name.fullmatch(case.name) and what.search(told) for name, what in known)


def work(options):
    """Run cases in this process; lines of JSON tell what was found, a file which case is under way."""
    global note
    limits.limit_memory()
    known, deadline = explanations(), time.monotonic() + (options.seconds or 1e9)
    done = 0
    with open(options.progress, "w") as progress:

        def note(library):
            progress.seek(0)
            progress.write(f"{index} {library:9}\n")
            progress.flush()
            limits.start_clock()

        for index in range(options.first, options.first + options.cases):
            if time.monotonic() > deadline:
                break
            case = cases.make(options.seed, index)
            done += 1
            words = difference(case)
            if words and is_explained(case, words, known):
                print(json.dumps({"explained": case.name}), flush=True)
            elif words:
                report(case, words, known)
    print(json.dumps({"done": done}), flush=True)


def report(case, words, known):
    """The difference as found, and again when it has been made small, which PyTorch may not survive."""
    tell(case.seed, case, words)
    small = cases.shrunk(case, lambda c: difference(c) is not None)
    words = difference(small)
    if is_explained(small, words, known):
        print(json.dumps({"explained": case.name, "instead": case.seed}), flush=True)
    else:
        tell(case.seed, small, words)


def tell(seed, case, words):
    entry = {"seed": seed, "name": case.name, "words": words, "program": cases.program(case)}
    print(json.dumps(entry), flush=True)


def supervise(options):
    """Run a worker, and another after each crash; print every kind of difference once."""
    index, end, found, totals = 0, options.cases, {}, collections.Counter()
    deadline = time.monotonic() + (options.seconds or 1e9)
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "case"
        while index < end and time.monotonic() < deadline:
            status = run_worker(options, index, end, progress, deadline, found, totals)
            if status == 0:
                break
            crashed, *library = progress.read_text().split()
            totals["cases"] += int(crashed) + 1 - index
            index = int(crashed) + 1
            case = cases.make(options.seed, index - 1)
            if library == ["rushlight"]:
                words = f"crash ({status})"
                found[case.seed] = {"name": case.name, "words": words, "program": cases.program(case)}
    distinct = {}
    for entry in found.values():
        kind = re.sub(r"(values|shape|crash|got| \d).*", "", entry["words"])
        distinct.setdefault((entry["name"], kind), entry)
    for entry in distinct.values():
        print(f"{entry['name']}: {entry['words']}\n  {entry['program']}\n")
    explained = totals["explained"]
    print(f"{totals['cases']} cases, {explained} explained differences, {len(distinct)} kinds unexplained")
    return 1 if distinct else 0


def run_worker(options, index, end, progress, deadline, found, totals):
    """Cases index to end in another process; its exit status."""
    command = [sys.executable, __file__, "--worker", "--progress", str(progress), "--seed", options.seed]
    command += ["--first", str(index), "--cases", str(end - index)]
    command += ["--seconds", str(deadline - time.monotonic())] if options.seconds else []
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for line in worker.stdout:
        entry = json.loads(line)
        totals["cases"] += entry.get("done", 0)
        totals["explained"] += "explained" in entry
        if "seed" in entry:
            found[entry["seed"]] = entry
        found.pop(entry.get("instead"), None)
    return worker.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--case", help="SEED/NUMBER: run one case and show it")
    for hidden, kind in (("--first", int), ("--progress", str)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        case = cases.make(*options.case.split("/"))
        print(f"{cases.program(case)}\n{difference(case) or 'no difference'}")
        return 0
    return work(options) if options.worker else supervise(options)


if __name__ == "__main__":
    sys.exit(main())
