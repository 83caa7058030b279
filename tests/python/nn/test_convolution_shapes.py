"""Convolutions of many shapes and layouts, forward and both gradients, against the same in double."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as rl
from rushlight.nn import functional as F

# batch, channels, filters, size, kernel, stride, padding, dilation, groups
SHAPES = {
    "image": (2, 3, 64, (31, 29), 3, 1, 1, 1, 1),
    "image, stride 2": (3, 3, 40, (37, 42), 7, 2, 3, 1, 1),
    "stride 2": (1, 64, 64, (28, 28), 3, 2, 1, 1, 1),
    "unequal": (2, 48, 40, (13, 17), (3, 5), (2, 1), (1, 0), (1, 2), 1),
    "a power of two apart": (2, 256, 24, (17, 15), 3, 2, 1, 1, 1),
    "wide lines": (3, 20, 28, (11, 300), 3, 1, 1, 1, 1),
    "dilated": (2, 40, 24, (14, 19), 3, 1, 3, 3, 1),
    "1x3": (2, 33, 17, (9, 21), (1, 3), 1, (0, 1), 1, 1),
    "3x1": (2, 33, 17, (9, 21), (3, 1), 1, (1, 0), 1, 1),
    "groups of 4": (2, 32, 32, (15, 13), 3, 1, 1, 1, 8),
    "groups of 8, stride 2": (2, 64, 64, (16, 19), 3, 2, 1, 1, 8),
    "groups of 16": (2, 48, 48, (12, 11), 3, 1, 1, 1, 3),
    "groups of 2 to 3": (2, 12, 18, (13, 15), (2, 3), 1, 1, 1, 6),
    "groups of 3 to 1, stride 2": (2, 12, 4, (14, 17), 3, 2, 1, 1, 4),
    "groups of 10 to 7": (2, 40, 28, (13, 14), 3, (1, 2), (2, 0), 1, 4),
    "groups of 60, one pixel": (2, 240, 240, (9, 10), 1, 1, 0, 1, 4),
    "groups, large stride": (2, 24, 72, (20, 20), 5, 3, 2, 1, 2),
    "patches": (2, 3, 48, (48, 32), 16, 16, 0, 1, 1),
    "patches with a rest": (2, 5, 24, (31, 29), (4, 3), (4, 3), 0, 1, 1),
    "patches of deep images": (1, 64, 96, (14, 14), 2, 2, 0, 1, 1),
    "one pixel, few channels": (2, 16, 96, (23, 21), 1, 1, 0, 1, 1),
    "one pixel, stride 2": (2, 64, 40, (13, 15), 1, 2, 0, 1, 1),
    "depthwise": (2, 40, 40, (15, 14), 3, 1, 1, 1, 40),
    "depthwise, stride 2": (2, 72, 72, (15, 18), 5, 2, 2, 1, 72),
    "depthwise, dilated": (2, 32, 32, (17, 12), (3, 2), (1, 2), (2, 1), (2, 1), 32),
    "two filters a channel": (2, 16, 32, (15, 14), 3, 1, 1, 1, 16),
}
LAYOUTS = ["planes", "last", "strided"]


def laid_out(t, layout):
    if layout == "last":
        return t.contiguous(memory_format=rl.channels_last)
    if layout == "strided":
        return rl.stack([t, t], -1).flatten(-2)[..., ::2]
    return t


def operands(shape, transposed):
    n, c, k, size, kernel, stride, padding, dilation, groups = shape
    rl.manual_seed(0)
    kernel = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    x, w = rl.randn(n, c, *size), rl.randn(k, c // groups, *kernel)
    y = F.conv2d(x.double(), w.double(), None, stride, padding, dilation, groups)
    if not transposed:
        return x, w, lambda x, w: F.conv2d(x, w, None, stride, padding, dilation, groups)
    rest = (0, groups, dilation)
    return rl.randn(y.shape), w, lambda x, w: F.conv_transpose2d(x, w, None, stride, padding, *rest)


def close(ours, wide):
    return (ours.double() - wide).abs().max() <= 8e-6 * wide.abs().max()


@pytest.mark.parametrize("transposed", [False, True], ids=["", "transposed"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SHAPES)
def test_results_and_gradients_are_those_of_double(name, layout, transposed):
    x, w, convolve = operands(SHAPES[name], transposed)
    wide = [t.double().requires_grad_(True) for t in (x, w)]
    leaves = [laid_out(t, layout).detach().requires_grad_(True) for t in (x, w)]
    y, expected = convolve(*leaves), convolve(*wide)
    assert close(y, expected)
    with rl.no_grad():
        for _ in range(3):  # the filters may be laid out beforehand by then
            again = convolve(*leaves)
    assert close(again, expected)
    seed = rl.randn(y.shape)
    ours = rl.autograd.grad(y, leaves, laid_out(seed, layout))
    for mine, theirs in zip(ours, rl.autograd.grad(expected, wide, seed.double()), strict=True):
        assert close(mine, theirs)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["stride 2", "groups of 8, stride 2", "depthwise", "patches", "1x3"])
def test_what_is_not_finite_is_not_lost(name, value):
    x, w, convolve = operands(SHAPES[name], False)
    x, w = x.requires_grad_(True), w.requires_grad_(True)
    seed = rl.randn(convolve(x, w).shape)
    seed[0, :, 1, 1] = value  # sees no padding
    ours = rl.autograd.grad(convolve(x, w), (x, w), seed)
    wide = [t.detach().double().requires_grad_(True) for t in (x, w)]
    expected = rl.autograd.grad(convolve(*wide), wide, seed.double())
    for mine, theirs in zip(ours, expected, strict=True):
        assert not mine[~theirs.isfinite()].isfinite().any()


@pytest.mark.skipif(
    rl.backends.cpu.get_cpu_capability() != "AVX512", reason="this process has no larger set than AVX2"
)
def test_the_same_with_avx2():
    settings = Path(__file__).resolve().parents[3] / "pyproject.toml"
    program = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(settings), __file__]
    limited = {**os.environ, "RUSHLIGHT_CPU_CAPABILITY": "avx2"}
    done = subprocess.run(program, env=limited, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
