"""A short seeded run of tests/fuzz/tensor_kinds.py, and what it must notice."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def _run(text):
    variables = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests/fuzz'}", "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *text], env=variables, capture_output=True, text=True, timeout=600)


def test_no_call_ends_the_process():
    ran = _run([ROOT / "tests/fuzz/tensor_kinds.py", "--calls", "3000", "--seed", "suite"])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "3000 calls, 0 findings" in ran.stdout


def test_ends_are_found():
    """A function that ends the process, or never ends, is told with its case; the others still run."""
    ran = _run(
        [
            "-c",
            """
import os, tensor_kinds as kinds
kinds.SECONDS_PER_CALL = 0.2
def endless(x):
    while True: pass
functions = {"fine": lambda x: x, "ends": lambda x: os.abort(), "endless": endless, "last": lambda x: x}
cases = [kinds.Case("jagged", name, "x") for name in functions]
for case, how in kinds.search(cases, functions, print):
    print("ended", case.function)
""",
        ]
    )
    assert ran.stdout.splitlines()[-2:] == ["ended ends", "ended endless"], ran.stdout + ran.stderr
