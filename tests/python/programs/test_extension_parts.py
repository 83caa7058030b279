"""Parts of `torch._C` that programs import."""

import subprocess
import sys

import pytest

import rushlight


@pytest.mark.parametrize(
    "part",
    [
        "_nn",
        "_fft",
        "_linalg",
        "_special",
        "_profiler",
        "_autograd",
        "_VariableFunctions",
        "_functorch",
        "_distributed_c10d",
    ],
)
def test_parts_are_modules(part):
    name = f"rushlight._C.{part}"
    __import__(name)
    assert sys.modules[name] is getattr(rushlight._C, part)
    with pytest.raises(ModuleNotFoundError, match="rushlight._C._nothing"):
        __import__("rushlight._C._nothing")


def test_parts_under_the_alias(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from torch._C._nn import gelu\n"
        "from torch._C._profiler import _ExperimentalConfig\n"
        "import torch, torch._C._fft as fft\n"
        "print(gelu is torch._C._nn.gelu, fft is torch._C._fft, _ExperimentalConfig(verbose=True).verbose)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "rushlight", program], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout == "True True True\n", ran.stderr
