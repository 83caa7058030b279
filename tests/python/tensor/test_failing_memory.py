"""Some hundred allocations that fail, and what longer runs found."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch
from rushlight._subclasses.fake_tensor import FakeTensorMode

ROOT = Path(__file__).resolve().parents[3]
CASES = (
    "^(add|matmul|cat|sort|nn.functional.(conv2d|interpolate|layer_norm)|fft.(irfftn|ihfftn)|linalg.(svd|eigh))"
    "(, |$)|^(a training step|an attention layer|save and load|function transforms)$"
)
# Graphs of the autograd engine that are collected while nothing else holds them.
COLLECTED = """
import gc, os, sys
sys.path.insert(0, sys.argv[1])
import failing_memory, rushlight

memory = failing_memory.Memory(os.environ["LD_PRELOAD"])
y = rushlight.ones(3, requires_grad=True)
for _ in range(50):
    y = y.sin() * y.cos()
node = y.grad_fn
del y
gc.collect()
print(memory.run(gc.collect, lambda _: "collected", 0, again=True)[0])
"""

needs_compiler = pytest.mark.skipif(
    not shutil.which(os.environ.get("CXX", "c++")), reason="no compiler for what refuses memory"
)


@needs_compiler
def test_collections_of_graphs_take_no_memory(tmp_path):
    folder = ROOT / "tests/fuzz"
    library = tmp_path / "failing.so"
    compiler = os.environ.get("CXX", "c++")
    source = folder / "failing_memory.cpp"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "LD_PRELOAD": str(library)}
    command = [sys.executable, "-c", COLLECTED, str(folder)]
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)
    assert ran.stdout == "collected\n", ran.stderr[-3000:]


def fail(cases, points):
    program = ROOT / "tests/fuzz/failing_memory.py"
    command = [sys.executable, program, "--points", str(points), "--only", cases]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)


@needs_compiler
def test_compilation_survives_failing_allocations():
    ran = fail("^a compiled function$", 110)
    assert re.search(r"2\d\d failures of memory", ran.stdout), ran.stdout[-5000:] + ran.stderr[-5000:]
    assert not re.search("ended with|no answer|another result|succeed|Error", ran.stdout), ran.stdout


@needs_compiler
def test_operators_and_programs_survive_failing_allocations():
    ran = fail(CASES, 25)
    assert ran.returncode == 0, ran.stdout[-10000:] + ran.stderr[-5000:]
    failures, found = map(int, re.search(r"(\d+) failures of memory, (\d+) found", ran.stdout).groups())
    assert failures > 1000 and found == 0


def test_fake_modes_end_without_memory():
    """Each allocation of Python's fails in turn: the mode is gone, and later results are real."""
    failing = pytest.importorskip("_testcapi")
    mode = FakeTensorMode()

    def enter_and_leave(end):
        failing.set_nomemory(end, end + 1)
        try:
            with mode:
                pass
        finally:
            failing.remove_mem_hooks()

    refused = 0
    for n in range(1, 40):
        for _ in range(3):  # small tuples and floats come from lists of former ones
            try:
                enter_and_leave(n)
            except MemoryError:
                refused += 1
            mode.enter_stack.clear()
            assert type(torch.ones(2)) is torch.Tensor, n
    assert refused > 0
