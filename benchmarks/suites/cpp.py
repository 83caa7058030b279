"""The core without Python: Google Benchmark programs, built by `./dev bench` or -DRUSHLIGHT_BENCHMARKS=ON."""

import json
import subprocess
import sys


def program(root):
    """The built program that is newest, or None."""
    found = [*root.glob("build/rushlight_benchmarks"), *root.glob("build/*/rushlight_benchmarks")]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def sample(module, plan, root):
    """Nanoseconds of ours; the peer's core has no such programs."""
    path = program(root) if module == "rushlight" else None
    if path is None:
        if module == "rushlight":
            print("  not built: `./dev bench cpp` does that where it finds Google Benchmark", file=sys.stderr)
        return {}
    seconds = "0.001" if plan.tiny else "0.05"
    options = ["--benchmark_format=json", f"--benchmark_min_time={seconds}"]
    done = subprocess.run(
        [path, *options], capture_output=True, text=True, check=True, env=_environment(plan), timeout=600
    )
    rows = json.loads(done.stdout)["benchmarks"]
    clock = "cpu_time" if plan.clock == "cpu" else "real_time"
    return {name_of(row): (row[clock] * 1e-9, "s") for row in rows}


def name_of(row):
    family, _, rest = row["name"].partition("/")
    return f"{family}/{rest.replace('/', ' ')}"


def _environment(plan):
    from ..runner import environment

    return {**environment(plan.threads, plan.capability), "RUSHLIGHT_NUM_THREADS": str(plan.threads)}
