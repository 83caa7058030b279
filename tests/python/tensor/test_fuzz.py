"""A short seeded run of the differential fuzzer; `tests/fuzz/run.py --cases 200000` is the long one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def fuzz(*options):
    command = [sys.executable, str(ROOT / "tests/fuzz/run.py"), *options]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=250)


def test_no_unexplained_difference():
    pytest.importorskip("torch", reason="PyTorch is the oracle of the fuzzer")
    ran = fuzz("--seed", "7", "--cases", "2500", "--seconds", "20")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "0 kinds unexplained" in ran.stdout


def test_a_case_is_the_same_again():
    pytest.importorskip("torch", reason="PyTorch is the oracle of the fuzzer")
    first, second = (fuzz("--case", "7/11") for _ in range(2))
    assert first.returncode == 0 and first.stdout == second.stdout and "# case 7/11" in first.stdout


def bounded(program):
    """What comes of a program that takes more than a case of a fuzzer may."""
    text = f"import limits\n{program}"
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "tests/fuzz")}
    command = [sys.executable, "-c", text]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=250)


def test_a_case_that_wants_all_memory_gets_an_error():
    ran = bounded("limits.limit_memory(1 << 28)\nbytearray(1 << 30)")
    assert ran.returncode == 1 and "MemoryError" in ran.stderr


@pytest.mark.parametrize(
    ("endless", "number"),
    [("while True: pass", signal.SIGPROF), ("import threading; threading.Event().wait()", signal.SIGALRM)],
)
def test_a_case_without_end_ends_its_process_and_tells_where(endless, number):
    ran = bounded(f"limits.start_clock(0.2)\n{endless}")
    assert ran.returncode == -number and "most recent call first" in ran.stderr
