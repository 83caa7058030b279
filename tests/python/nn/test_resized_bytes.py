"""Images of bytes, and pixels of a few channels, are resized by loops of their own."""

import os
import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch
from rushlight._command.names import is_aliased
from rushlight.nn import functional as F

# Heights below and above the rows that are resized together, widths with and without whole squares.
SIZES = [
    ((64, 64), (128, 128)),
    ((33, 47), (20, 21)),
    ((7, 9), (5, 30)),
    ((8, 5), (16, 3)),
    ((100, 3), (17, 40)),
    ((32, 16), (32, 61)),
    ((200, 16), (61, 16)),
    ((40, 40), (40, 40)),
    ((65, 131), (130, 33)),
]
FORMS = [("bilinear", True), ("bilinear", False), ("bicubic", True), ("bicubic", False)]


def picture(channels, size, seed=0):
    """Noise below, black and white above: sums leave the range of bytes there."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 256, (1, channels, *size), dtype=np.uint8)
    return np.concatenate([noise, np.where(noise > 127, 255, 0).astype(np.uint8)])


@pytest.mark.parametrize(("mode", "antialias"), FORMS)
@pytest.mark.parametrize(("size", "to"), SIZES)
def test_bytes_are_those_of_the_oracle(size, to, mode, antialias):
    oracle = pytest.importorskip("torch")
    if is_aliased():
        pytest.skip("compares with PyTorch")
    for channels in (1, 3, 4, 9):
        x = picture(channels, size)
        for corners in (False,) if antialias else (False, True):
            ours, theirs = (
                m.nn.functional.interpolate(
                    m.from_numpy(x.copy()), size=to, mode=mode, antialias=antialias, align_corners=corners
                )
                for m in (torch, oracle)
            )
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("mode", "antialias"), FORMS)
@pytest.mark.parametrize("channels", [2, 3, 8, 9, 17])
def test_channels_last_changes_no_pixel(channels, mode, antialias, dtype):
    for size, to in SIZES:
        x = torch.from_numpy(picture(channels, size, 1)).to(getattr(torch, dtype))
        plain, last = (
            F.interpolate(y, size=to, mode=mode, antialias=antialias)
            for y in (x, x.contiguous(memory_format=torch.channels_last))
        )
        assert last.is_contiguous(memory_format=torch.channels_last)
        if dtype == "uint8":
            assert torch.equal(plain, last)
        else:
            torch.testing.assert_close(plain, last.contiguous(), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("antialias", [True, False])
def test_gradients_of_pixels_of_few_channels(antialias):
    x = torch.from_numpy(picture(3, (33, 47))).to(torch.float64)
    grads = []
    for form in (torch.contiguous_format, torch.channels_last):
        leaf = x.detach().contiguous(memory_format=form).requires_grad_()
        (F.interpolate(leaf, size=(20, 61), mode="bicubic", antialias=antialias) ** 2).sum().backward()
        grads.append(leaf.grad)
    torch.testing.assert_close(grads[0], grads[1].contiguous())


def test_pixels_that_no_tap_meets_are_not_read():
    """Nor does what they hold spread in a gradient."""
    x = torch.zeros(1, 3, 9, 9).contiguous(memory_format=torch.channels_last).requires_grad_()
    y = F.interpolate(x, size=(3, 3), mode="bilinear")
    grad = torch.zeros_like(y)
    grad[0, 1, 1, 1] = float("inf")
    y.backward(grad)
    assert torch.isfinite(x.grad).sum() == x.numel() - 1


def test_threads_and_sets_of_instructions_change_nothing():
    program = (
        "import hashlib, numpy as np, rushlight as torch\n"
        "from rushlight.nn import functional as F\n"
        "torch.set_num_threads({threads})\n"
        "seen = hashlib.sha256()\n"
        "rng = np.random.default_rng(3)\n"
        "for size, to in (((200, 130), (61, 301)), ((9, 33), (90, 15))):\n"
        "    x = torch.from_numpy(rng.integers(0, 256, (3, 3, *size), dtype=np.uint8))\n"
        "    for mode in ('bilinear', 'bicubic'):\n"
        "        for antialias in (True, False):\n"
        "            y = F.interpolate(x, size=to, mode=mode, antialias=antialias)\n"
        "            seen.update(y.numpy().tobytes())\n"
        "print(seen.hexdigest())\n"
    )
    sets = {(s, n) for s in ("baseline", "avx2", "avx512") for n in (1, 2)}
    said = {
        subprocess.run(
            [sys.executable, "-c", program.format(threads=n)],
            env={**os.environ, "RUSHLIGHT_CPU_CAPABILITY": s},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for s, n in sorted(sets)
    }
    assert len(said) == 1
