"""Counts the instructions of small operations and of imports under Valgrind's callgrind, which gives the
same numbers on each run, however busy the machine is.

    python tests/python/project/instructions.py            # prints the counts beside their ceilings
    python tests/python/project/instructions.py --update   # sets the ceilings 15% above the counts

callgrind writes its counts when the program calls getppid(), which each row does before and after its loop.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CEILINGS = pathlib.Path(__file__).with_name("instruction_ceilings.json")
REPEATS, WARM_UP = 100, 40
STARTS = ("import rushlight", "import rushlight.nn, rushlight.optim, rushlight.utils.data")


def rows():
    """Name -> a call; the first does nothing, and its cost is taken off the others'."""
    import rushlight as torch
    from rushlight import nn
    from rushlight.nn import functional as F

    torch.set_num_threads(1)
    a, b, matrix = torch.ones(4), torch.ones(4), torch.ones(4, 4)
    wanted = torch.ones(4, requires_grad=True)
    x, weight = torch.randn(2, 8), torch.randn(8, 8, requires_grad=True)
    index, linear = torch.tensor([0, 2]), nn.Linear(8, 8)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    half, half_weight = x.bfloat16(), weight.detach().bfloat16()

    def autocast():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            pass

    def infer():
        with torch.inference_mode():
            pass

    def assign():
        linear.scale = 2

    def replace():
        linear.weight = parameter

    parameter = linear.weight

    def train():
        optimizer.zero_grad()
        F.mse_loss(model(x), x).backward()
        optimizer.step()

    return {
        "nothing": lambda: None,
        "a + b": lambda: a + b,
        "a + 1": lambda: a + 1,
        "a.add(b)": lambda: a.add(b),
        "a.add_(b)": lambda: a.add_(b),
        "recorded a * b": lambda: wanted * b,
        "sum of a dimension": lambda: matrix.sum(dim=1, keepdim=True),
        "view": lambda: matrix.view(16),
        "matrix[1]": lambda: matrix[1],
        "matrix[index]": lambda: matrix[index],
        "shape": lambda: matrix.shape,
        "numpy": lambda: a.numpy(),
        "zeros": lambda: torch.zeros(4),
        "cat": lambda: torch.cat([a, b]),
        "softmax": lambda: torch.softmax(matrix, -1),
        "recorded linear": lambda: F.linear(x, weight),
        "module": lambda: linear(x),
        "parameters": lambda: list(model.parameters()),
        "children": lambda: list(model.children()),
        "set an attribute": assign,
        "set a parameter": replace,
        "make a module": nn.ReLU,
        "autocast": autocast,
        "inference_mode": infer,
        "small bfloat16 linear": lambda: F.linear(half, half_weight),
        "backward": lambda: (wanted * b).sum().backward(),
        "training step": train,
    }


def run_rows():
    import gc

    gc.collect()
    gc.disable()
    for name, call in rows().items():
        for _ in range(WARM_UP):
            call()
        os.getppid()
        for _ in range(REPEATS):
            call()
        os.getppid()
        print(name, flush=True)


def missing():
    """Why nothing can be counted here, or None."""
    if sys.platform != "linux":
        return "callgrind counts are taken on Linux"
    return None if shutil.which("valgrind") else "valgrind is not installed"


def run_under_callgrind(dumps, options, program, path=(), **variables):
    """What the program prints, which finds modules in our root and `path`; counts are written to `dumps`."""
    root = str(pathlib.Path(__file__).resolve().parents[3])
    path = os.pathsep.join([root, *filter(None, path)])
    fixed = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={dumps}", *options, sys.executable, *program],
        env={**os.environ, **fixed, **variables},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"callgrind failed:\n{done.stdout}\n{done.stderr[-3000:]}")
    return done.stdout


def count_starts():
    """As `count`, of imports: by a bare interpreter, whose own start is taken off, from compiled files.

    Modules are sought in our root and in Python's library alone: each folder more costs half a million, and a
    run of the whole suite has fifty. The least of two counts after a run that compiles: a source that another
    process touches in between is compiled again.
    """
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        dumps, compiled = os.path.join(folder, "dump"), os.path.join(folder, "compiled")
        variables = {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}

        def counted(statement):
            run_under_callgrind(dumps, [], ["-S", "-c", statement], **variables)
            with open(dumps) as dump:
                return costs(dump)

        for statement in ("pass", *STARTS):
            counted(statement)
            found[statement] = min(counted(statement) for _ in range(2))
    bare = found.pop("pass")
    return {name: {"all": every - bare[0], "core": core - bare[1]} for name, (every, core) in found.items()}


def costs(dump):
    """Instructions in one dump: all, and those inside our libraries."""
    own = re.compile(r"/rushlight/(_C\.|lib/librushlight)")
    total = ours = 0
    names, mine, skip = {}, False, False
    for line in dump:
        if line.startswith("ob="):
            number, _, path = line[3:].partition(" ")
            names.setdefault(number.strip(), path.strip())
            mine = bool(own.search(names[number.strip()]))
        elif line.startswith("cob="):
            number, _, path = line[4:].partition(" ")
            if path:
                names.setdefault(number.strip(), path.strip())
        elif line.startswith("calls="):
            skip = True  # the next line is what the callee took
        elif line[:1].isdigit() or line[:1] in "+-*":
            if not skip:
                cost = int(line.split()[1])
                total += cost
                ours += cost if mine else 0
            skip = False
    return total, ours


def count():
    """Name -> {"all": instructions of a call with the interpreter's, "core": those of the core alone}."""
    with tempfile.TemporaryDirectory() as folder:
        dumps = os.path.join(folder, "dump")
        printed = run_under_callgrind(dumps, ["--dump-before=getppid"], [__file__, "--rows"], sys.path)
        counts = {}
        for i, name in enumerate(printed.split("\n")[:-1]):
            with open(f"{dumps}.{2 * i + 2}") as dump:
                counts[name] = [n / REPEATS for n in costs(dump)]
    nothing = counts.pop("nothing")
    return {
        name: {"all": round(every - nothing[0]), "core": round(core - nothing[1])}
        for name, (every, core) in counts.items()
    }


def main():
    if "--rows" in sys.argv:
        run_rows()
        return
    counts = {**count(), **count_starts()}
    ceilings = json.loads(CEILINGS.read_text()) if CEILINGS.exists() else {}
    for name, found in counts.items():
        allowed = ceilings.get(name, {})
        print(f"{name:20} " + "  ".join(f"{k} {found[k]:7} of {allowed.get(k, 0):7}" for k in found))
    if "--update" in sys.argv:
        raised = {name: {k: round(n * 1.15) for k, n in found.items()} for name, found in counts.items()}
        CEILINGS.write_text(json.dumps(raised, indent=1) + "\n")


if __name__ == "__main__":
    main()
