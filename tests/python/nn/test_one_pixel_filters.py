"""Convolutions by filters of one pixel, which are products of matrices: every dtype and order of memory,
beside the same as a product of doubles."""

import itertools

import pytest

import rushlight as torch
import rushlight.nn.functional as F

# batch, channels in and out, height, width, stride: large and small images, tiny products, rows in blocks
SIZES = [(2, 24, 40, 28, 30, 1), (1, 3, 5, 6, 7, 1), (3, 32, 8, 13, 9, 2), (1, 256, 64, 40, 40, 1)]
ERRORS = {torch.float16: 3e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5, torch.float64: 1e-12}


@pytest.mark.parametrize(
    ("sizes", "dtype", "last", "bias"),
    itertools.product(SIZES, ERRORS, [False, True], [False, True]),
)
def test_product_and_gradients(sizes, dtype, last, bias):
    batch, channels, filters, height, width, stride = sizes
    torch.manual_seed(height)
    order = torch.channels_last if last else torch.contiguous_format
    image = torch.randn(batch, channels, height, width, dtype=torch.float64)
    weight = torch.randn(filters, channels, 1, 1, dtype=torch.float64) / channels**0.5
    shift = torch.randn(filters, dtype=torch.float64) if bias else None
    operands = [x for x in (image, weight, shift) if x is not None]
    found = [x.to(dtype).to(memory_format=order) if x.dim() == 4 else x.to(dtype) for x in operands]
    exact = [x.double().contiguous() for x in found]
    for x in (*found, *exact):
        x.requires_grad_()
    out = F.conv2d(*found, stride=stride)
    expected = torch.einsum("bchw,oc->bohw", exact[0][:, :, ::stride, ::stride], exact[1][:, :, 0, 0])
    if bias:
        expected = expected + exact[2].view(-1, 1, 1)
    flow = torch.randn(out.shape).to(dtype).to(memory_format=order)
    pairs = [(out, expected)]
    pairs += zip(
        torch.autograd.grad(out, found, flow),
        torch.autograd.grad(expected, exact, flow.double().contiguous()),
        strict=True,
    )
    for ours, right in pairs:
        assert ours.dtype == dtype and ours.shape == right.shape
        error = (ours.double() - right).abs().max().item()
        assert error <= ERRORS[dtype] * max(1.0, right.abs().max().item()), error
