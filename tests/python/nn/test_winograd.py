"""3x3 convolutions of stride 1 by transformed tiles, against the same in double."""

import itertools

import pytest

import rushlight as rl
from rushlight.nn import functional as F
from rushlight.nn import grad as nn_grad

SHAPES = [  # batch, channels, filters, height, width, padding
    (2, 64, 64, 28, 28, 1),
    (1, 48, 80, 37, 41, 1),
    (3, 64, 50, 33, 17, 0),
    (2, 52, 64, 19, 40, 2),
    (8, 256, 40, 14, 14, 1),
    (2, 64, 64, 14, 14, 1),  # tiles of two by two results
    (4, 20, 36, 30, 21, 1),
    (1, 512, 48, 28, 28, 1),
]


def error(ours, wide):
    return ((ours.double() - wide).abs().max() / wide.abs().max()).item()


def close(ours, wide):
    return error(ours, wide) <= 8e-6


@pytest.mark.parametrize(("shape", "bias"), itertools.product(SHAPES, (False, True)))
def test_results_and_gradients_are_those_of_double(shape, bias):
    n, c, k, h, w, padding = shape
    rl.manual_seed(0)
    x, weight, b = rl.randn(n, c, h, w), rl.randn(k, c, 3, 3), rl.randn(k) if bias else None
    leaves = [t.requires_grad_(True) for t in (x, weight)]
    wide = [t.detach().double().requires_grad_(True) for t in leaves]
    y = F.conv2d(*leaves, b, padding=padding)
    expected = F.conv2d(*wide, b if b is None else b.double(), padding=padding)
    assert close(y, expected)
    seed = rl.randn(*y.shape)
    for ours, theirs in zip(
        rl.autograd.grad(y, leaves, seed), rl.autograd.grad(expected, wide, seed.double()), strict=True
    ):
        assert close(ours, theirs)


def test_precision_of_ieee_computes_every_product():
    rl.manual_seed(0)
    x, weight = rl.randn(1, 256, 32, 32), rl.randn(64, 256, 3, 3)
    wide = F.conv2d(x.double(), weight.double(), padding=1)
    by_transforms = F.conv2d(x, weight, padding=1)
    setting = rl.backends.mkldnn.conv
    assert setting.fp32_precision == "none"
    try:
        setting.fp32_precision = "ieee"
        direct = F.conv2d(x, weight, padding=1)
        assert setting.fp32_precision == "ieee"
    finally:
        setting.fp32_precision = "none"
    assert rl.equal(F.conv2d(x, weight, padding=1), by_transforms)
    assert not rl.equal(direct, by_transforms)
    assert error(direct, wide) < error(by_transforms, wide)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 3e38])
def test_gradients_of_filters_that_are_not_finite_are_those_of_the_definition(value):
    rl.manual_seed(0)
    x, seed = rl.randn(2, 32, 28, 28), rl.randn(2, 48, 28, 28)
    x[1, 5, 10, 13] = value
    gradient = nn_grad.conv2d_weight(x, (48, 32, 3, 3), seed, padding=1)
    touched = rl.zeros(48, 32, 3, 3, dtype=rl.bool)
    touched[:, 5] = True
    assert gradient[~touched].isfinite().all()
    assert value == 3e38 or not gradient[touched].isfinite().any()


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 3e38])
def test_a_pixel_that_is_not_finite_stays_where_it_belongs(value):
    rl.manual_seed(0)
    x, weight = rl.randn(2, 64, 28, 28), rl.randn(64, 64, 3, 3)
    x[1, 5, 10, 13] = value
    y = F.conv2d(x, weight, padding=1)
    touched = rl.zeros(2, 64, 28, 28, dtype=rl.bool)
    touched[1, :, 9:12, 12:15] = True
    assert y[~touched].isfinite().all()
    assert value == 3e38 or not y[touched].isfinite().any()


def test_threads_do_not_change_results():
    if rl.backends.cpu.get_cpu_capability() != "AVX512":
        pytest.skip(
            "without AVX-512 oneDNN cuts products by threads, and their ends are summed in another order"
        )
    rl.manual_seed(0)
    x, weight = rl.randn(2, 64, 56, 56), rl.randn(64, 64, 3, 3)
    threads = rl.get_num_threads()
    try:
        results = []
        for n in (1, 2, 3):
            rl.set_num_threads(n)
            results.append(F.conv2d(x, weight, padding=1))
    finally:
        rl.set_num_threads(threads)
    assert all(rl.equal(r, results[0]) for r in results)
