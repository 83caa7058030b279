"""How many threads calls into other libraries start."""

import subprocess
import sys

import pytest

_PROGRAM = """
import os
import rushlight as torch

torch.set_num_threads(1)
{statement}
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.parametrize(
    "statement",
    [
        "torch.linalg.svd(torch.randn(8, 40, 40))",
        "torch.linalg.svd(torch.randn(300, 300))",
        "torch.linalg.eigh(torch.eye(64).expand(4, 64, 64))",
        "torch.randn(200, 200) @ torch.randn(200, 200)",
        "torch.randn(40, 40) @ torch.randn(40, 40)",
        "torch.randn(60, 80).double() @ torch.randn(80, 50).double()",
        "torch.randn(30, 30, dtype=torch.complex64) @ torch.randn(30, 30, dtype=torch.complex64)",
        "torch.randn(9, 20, 20, dtype=torch.complex128) @ torch.randn(9, 20, 20, dtype=torch.complex128)",
        "torch.randn(500, 300, dtype=torch.complex64) @ torch.randn(300, dtype=torch.complex64)",
        "torch.randn(2000, 500) @ torch.randn(500)",
        "torch.randn(500) @ torch.randn(500, 2000)",
        "torch.randn(100000) @ torch.randn(100000)",
        "torch.nn.functional.linear(torch.randn(3, 70).half(), torch.randn(80, 70).half())",
        "torch.linalg.solve(torch.eye(20), torch.randn(20, 3))",
        "torch.nn.LSTM(20, 30)(torch.randn(5, 2, 20))",
        "torch.fft.fft(torch.randn(1 << 16))",
        "torch.nn.functional.conv2d(torch.randn(4, 16, 32, 32), torch.randn(16, 16, 3, 3))",
    ],
)
def test_one_thread_means_one(statement):
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(statement=statement)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.split() == ["1"]
