"""A short seeded run of tests/fuzz/random_programs.py; `--programs 200000` is the long one."""

import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).parents[2] / "fuzz" / "random_programs.py"


@pytest.mark.parametrize(
    ("modes", "programs"), [("eager,vmap", 60), ("compile,threads", 30), ("export,file", 30)]
)
def test_random_programs_are_those_of_pytorch(modes, programs):
    pytest.importorskip("torch", reason="PyTorch is the oracle of the fuzzer")
    command = [sys.executable, str(FUZZER), "--seed", "suite", "--programs", str(programs), "--modes", modes]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{programs} programs" in ran.stdout
