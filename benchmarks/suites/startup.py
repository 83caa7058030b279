"""Programs from their start: time and memory of the import and of first results; installed size."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

REPORT = """
import json, resource
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([seconds, used.ru_maxrss / 1024]))
"""
IMPORT = """
from time import {clock} as clock
start = clock()
import {module}
seconds = clock() - start
"""
PROGRAMS = {
    "import": IMPORT,
    "import of nn, optim, utils.data": IMPORT.replace(
        "import {module}\n", "import {module}.nn.functional, {module}.optim, {module}.utils.data\n"
    ),
    "first addition": IMPORT.replace(
        "import {module}\n", "import {module} as torch\ntorch.set_num_threads({threads})\ntorch.ones(3) + 1\n"
    ),
    "first training step": IMPORT.replace(
        "import {module}\n",
        """import {module} as torch
torch.set_num_threads({threads})
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(2, 4)).sum().backward()
optimizer.step()
""",
    ),
}


CLOCKS = {"wall": "perf_counter", "cpu": "process_time"}


def clock(plan):
    """Time as the plan wants it; processor time is that of the programs that were started."""
    if plan.clock == "wall":
        return time.perf_counter()
    times = os.times()
    return times.children_user + times.children_system


def sample(module, plan, root):
    """One start of each program; the whole process is timed too, interpreter and exit included."""
    from ..runner import environment

    figures = {}
    for name, program in PROGRAMS.items():
        code = program.format(module=module, threads=plan.threads, clock=CLOCKS[plan.clock]) + REPORT
        start = clock(plan)
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment(plan.threads, plan.capability),
            capture_output=True,
            text=True,
            timeout=plan.timeout,
            check=True,
        )
        whole = clock(plan) - start
        seconds, memory = json.loads(done.stdout.splitlines()[-1])
        figures[f"time/{name}"] = (seconds, "s")
        figures[f"memory/{name}"] = (memory, "MB")
        if name == "first training step":
            figures["time/the whole process"] = (whole, "s")
    figures["disk/installed package"] = (installed_size(module), "MB")
    return figures


def installed_size(module):
    """MB of the package's files."""
    found = importlib.util.find_spec(module)
    assert found is not None and found.origin is not None
    package = Path(found.origin).parent
    files = (Path(folder, name) for folder, _, names in os.walk(package) for name in names)
    return (
        sum(path.stat().st_size for path in files if path.suffix != ".pyc" and not path.is_symlink()) / 2**20
    )
