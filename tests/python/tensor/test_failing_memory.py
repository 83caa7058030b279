"""Some hundred allocations that fail, and what longer runs found."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CASES = (
    "^(add|matmul|cat|sort|nn.functional.(conv2d|interpolate|layer_norm)|fft.(irfftn|ihfftn)|linalg.(svd|eigh))"
    "(, |$)|^(a training step|an attention layer|save and load|function transforms)$"
)


@pytest.mark.skipif(
    not shutil.which(os.environ.get("CXX", "c++")), reason="no compiler for what refuses memory"
)
def test_operators_and_programs_survive_failing_allocations():
    command = [sys.executable, ROOT / "tests/fuzz/failing_memory.py", "--points", "25", "--only", CASES]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout[-10000:] + ran.stderr[-5000:]
    failures, found = map(int, re.search(r"(\d+) failures of memory, (\d+) found", ran.stdout).groups())
    assert failures > 1000 and found == 0
