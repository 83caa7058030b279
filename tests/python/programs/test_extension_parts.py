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


def _layers(nn, t):
    x, y = t.arange(18.0).view(1, 2, 3, 3), t.arange(54.0).view(1, 2, 3, 3, 3)
    flat, cube = t.ones(1, 2, 2, 2), t.ones(1, 2, 2, 2, 2)
    return [
        nn.thnn_conv2d(x, flat, 2),
        nn.slow_conv3d(y, cube, [2, 2, 2], t.ones(1), 1, 1),
        nn.slow_conv_dilated2d(x, flat, 2, None, 1, 0, 2),
        nn.slow_conv_dilated3d(y, cube, 2, dilation=2),
        nn.slow_conv_transpose2d(x, flat.transpose(0, 1), 2),
        nn.slow_conv_transpose3d(y, cube.transpose(0, 1), 2, None, 1, 0, 0, 1),
        nn.adaptive_avg_pool3d(y, 2),
        *nn.adaptive_max_pool2d(x, (2, 2)),
        *nn.adaptive_max_pool3d(y, (2, 2, 2)),
        nn.relu6_(t.tensor([7.0, -1.0])),
        nn.pad_sequence([t.ones(2), t.ones(3)], True, 0.5, "left"),
    ]


def test_layers_by_the_names_of_their_kernels():
    oracle = pytest.importorskip("torch")
    ours = [x.tolist() for x in _layers(rushlight._C._nn, rushlight)]
    assert ours == [x.tolist() for x in _layers(oracle._C._nn, oracle)]
    with pytest.raises(RuntimeError, match=r"kernel of \(3, 3\), but got weight"):
        rushlight._C._nn.thnn_conv2d(rushlight.ones(1, 1, 4, 4), rushlight.ones(1, 1, 2, 2), 3)
    volume, depthwise = rushlight.ones(1, 2, 3, 3, 3), rushlight.ones(2, 1, 2, 2, 2)
    made = rushlight._C._nn.conv_depthwise3d(volume, depthwise, 2, None, 1, 0, 1)
    assert made.shape == (1, 2, 2, 2, 2) and made.unique().tolist() == [8]
