"""Normalisations of halves that are too many to be widened at once: line by line, to the same results."""

import pytest

import rushlight as torch
from rushlight.nn import functional as F

# More than 2^18 elements, whose lines are short, long and no multiple of a register.
SHAPES = [(70, 33, 129), (9, 64, 32, 33), (5000, 67), (2, 6, 24_000), (3, 16, 129, 67)]


def normalised(name, x, parameters):
    channels, width = parameters[:2], parameters[2:]
    if name == "batch":
        return F.batch_norm(x, None, None, *channels, training=True)
    if name == "running":
        mean = torch.linspace(-1, 1, x.size(1)).to(x.dtype)
        return F.batch_norm(x, mean, mean.abs() + 0.5, *channels)
    if name == "group":
        return F.group_norm(x, 3 if x.size(1) % 3 == 0 else 1, *channels)
    if name == "rms":
        return F.rms_norm(x, x.shape[-1:], width[0])
    return F.layer_norm(x, x.shape[-1:], *width)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize("name", ["batch", "running", "group", "layer", "rms"])
@pytest.mark.parametrize("shape", SHAPES)
def test_large_halves_are_normalised_as_floats(shape, name, last, kind):
    if last and len(shape) != 4:
        return
    dtype = getattr(torch, kind)
    torch.manual_seed(0)
    form = torch.channels_last if last else torch.contiguous_format
    x = torch.randn(shape).to(dtype).contiguous(memory_format=form)
    sizes = [shape[1], shape[1], shape[-1], shape[-1]]
    parameters = [torch.randn(n).to(dtype) for n in sizes]
    grad = torch.randn(shape).to(dtype).contiguous(memory_format=form)
    found = []
    for wide in (False, True):
        leaves = [(t.float() if wide else t.clone()).requires_grad_() for t in (x, *parameters)]
        y = normalised(name, leaves[0], leaves[1:])
        used = leaves if name in ("layer", "rms") else leaves[:3]
        grads = torch.autograd.grad(y, used, grad.float() if wide else grad, allow_unused=True)
        found.append([y, *grads])
    bound = {"float16": 2e-3, "bfloat16": 1.6e-2}[kind]
    for half, full in zip(*found):
        if half is None:
            assert full is None
            continue
        assert half.dtype == dtype
        size = full.abs().max().item() + 1e-6
        torch.testing.assert_close(half.float(), full, rtol=bound, atol=bound * size)
