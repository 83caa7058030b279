"""Kernels on sizes that take their blocked, vectorised and parallel paths, against NumPy."""

import os
import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch

HALVES = [torch.bfloat16, torch.float16]


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def normal(*shape, dtype=torch.float32, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return torch.from_numpy(values).to(dtype)


def exact(*tensors):
    return [t.double().numpy() for t in tensors]


def close(result, expected, dtype, scale=1.0):
    step = {torch.bfloat16: 2**-8, torch.float16: 2**-10, torch.float32: 2**-20, torch.float64: 2**-48}[dtype]
    assert result.dtype == dtype
    np.testing.assert_allclose(result.double().numpy(), expected, rtol=step, atol=step * scale)


@pytest.mark.parametrize("dtype", HALVES + [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "sizes", [(1, 7, 1), (1, 300, 200), (200, 300, 1), (33, 65, 127), (5, 0, 3), (64, 1, 64)]
)
def test_products_of_odd_sizes_and_orientations(sizes, dtype, threads):
    m, k, n = sizes
    a, b, c = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype, seed=1), normal(m, n, dtype=dtype, seed=2)
    x, y, z = exact(a, b, c)
    scale = 4 * max(1, k) ** 0.5
    for left in (a, a.t().contiguous().t()):
        for right in (b, b.t().contiguous().t()):
            close(left @ right, x @ y, dtype, scale)
            close(torch.addmm(c, left, right), z + x @ y, dtype, scale)
            close(torch.addmm(c, left, right, beta=0.5, alpha=-2), 0.5 * z - 2 * (x @ y), dtype, scale)
    close(torch.nn.functional.linear(a, b.t(), c[0]), x @ y + z[0], dtype, scale)
    spaced = normal(m, 2 * k, dtype=dtype)[:, ::2]
    close(spaced @ b, exact(spaced)[0] @ y, dtype, scale)


@pytest.mark.parametrize("dtype", HALVES + [torch.float32])
@pytest.mark.parametrize("sizes", [(3, 4, 4, 4), (5, 17, 16, 33), (2, 1, 9, 40), (2, 40, 9, 1), (1, 8, 8, 8)])
def test_batches_of_products(sizes, dtype, threads):
    b, m, k, n = sizes
    x, y, z = (normal(*s, dtype=dtype, seed=i) for i, s in enumerate([(b, m, k), (b, k, n), (b, m, n)]))
    ex, ey, ez = exact(x, y, z)
    scale = 4 * k**0.5
    close(torch.bmm(x, y), ex @ ey, dtype, scale)
    close(torch.bmm(x, y.mT.contiguous().mT), ex @ ey, dtype, scale)
    close(torch.bmm(x.mT.contiguous().mT, y), ex @ ey, dtype, scale)
    close(torch.baddbmm(z, x, y, beta=2, alpha=0.5), 2 * ez + 0.5 * (ex @ ey), dtype, scale)


@pytest.mark.parametrize("dtype", HALVES)
def test_products_of_halves_sum_in_float(dtype):
    ones = torch.full((1, 4096), 1.0, dtype=dtype)
    assert (ones @ torch.full((4096, 1), 1 / 4096, dtype=dtype)).item() == 1.0
    nothing, some = torch.full((2, 3), float("nan"), dtype=dtype), torch.ones(3, 3, dtype=dtype)
    assert not torch.addmm(nothing, some[:2], some, beta=0).isnan().any()


def correlate(x, w, stride, padding, dilation):
    """Depthwise convolution of [n, c, ...] by [c * m, 1, ...], by its definition, in float64."""
    spatial = w.ndim - 2
    multiplier = w.shape[0] // x.shape[1]
    x = np.pad(np.repeat(x, multiplier, 1), [(0, 0)] * 2 + [(p, p) for p in padding])
    reach = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    size = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, stride, strict=True)]
    y = np.zeros((*x.shape[:2], *size))
    for tap in np.ndindex(*w.shape[2:]):
        at = [
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, dilation, size, stride, strict=True)
        ]
        y += x[(slice(None), slice(None), *at)] * w[(slice(None), 0, *tap)].reshape(1, -1, *[1] * spatial)
    return y


DEPTHWISE = [  # image, kernel, stride, padding, dilation, multiplier
    ((9, 11), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((12, 31), (3, 3), (1, 1), (0, 0), (1, 1), 1),
    ((70, 67), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((17, 40), (3, 5), (2, 1), (0, 4), (1, 1), 2),
    ((20, 75), (3, 3), (2, 2), (1, 1), (1, 1), 1),
    ((15, 16), (2, 3), (3, 2), (3, 2), (2, 3), 3),
    ((7, 7), (7, 7), (1, 1), (3, 3), (1, 1), 1),
    ((1, 5), (1, 1), (1, 4), (0, 0), (1, 1), 1),
    ((100,), (7,), (1,), (3,), (2,), 1),
    ((33,), (4,), (3,), (5,), (1,), 2),
    ((5, 9, 8), (3, 3, 3), (1, 2, 1), (1, 0, 1), (1, 1, 2), 1),
    ((6, 6, 18), (2, 3, 1), (2, 1, 3), (1, 2, 0), (1, 2, 1), 2),
]


@pytest.mark.parametrize("dtype", HALVES + [torch.float32, torch.float64])
@pytest.mark.parametrize("case", DEPTHWISE)
def test_depthwise_convolutions(case, dtype, threads):
    image, kernel, stride, padding, dilation, multiplier = case
    n, c = 2, 3
    x = normal(n, c, *image, dtype=dtype).requires_grad_()
    w = normal(c * multiplier, 1, *kernel, dtype=dtype, seed=1).requires_grad_()
    b = normal(c * multiplier, dtype=dtype, seed=2)
    conv = getattr(torch.nn.functional, f"conv{len(image)}d")
    y = conv(x, w, b, stride, padding, dilation, groups=c)
    ex, ew, eb = exact(x.detach(), w.detach(), b)
    expected = correlate(ex, ew, stride, padding, dilation)
    close(y.detach(), expected + eb.reshape(1, -1, *[1] * len(image)), dtype, 16)
    g = normal(*y.shape, dtype=dtype, seed=3)
    y.backward(g)
    eg = exact(g)[0]
    # The adjoints, against the definition through inner products with unit tensors' images.
    probe = np.random.default_rng(4).standard_normal(ex.shape)
    np.testing.assert_allclose(
        (x.grad.double().numpy() * probe).sum(),
        (correlate(probe, ew, stride, padding, dilation) * eg).sum(),
        rtol=1e-6 if dtype == torch.float64 else 0.02,
        atol=1e-6 if dtype == torch.float64 else {torch.float32: 1e-3}.get(dtype, 2.0),
    )
    for tap in np.ndindex(*kernel):
        unit = np.zeros_like(ew)
        unit[(slice(None), 0, *tap)] = 1
        product = (correlate(ex, unit, stride, padding, dilation) * eg).sum((0, *range(2, 2 + len(image))))
        close(w.grad[(slice(None), 0, *tap)], product, dtype, 4 * eg[0, 0].size ** 0.5)


def test_depthwise_convolution_keeps_infinities_apart():
    x = torch.zeros(1, 2, 5, 12)
    x[0, 0, 0, 11] = float("inf")
    w = torch.ones(2, 1, 3, 3, requires_grad=True)
    y = torch.nn.functional.conv2d(x, w, padding=1, groups=2)
    assert y.isfinite().sum() == 120 - 4 and not y.isnan().any()
    g = torch.zeros(1, 2, 5, 12)
    g[0, 0, 4, 0] = 1.0  # far from the infinity
    y.backward(g)
    sees = torch.tensor(
        [[False, True, True], [False, True, True], [False, False, False]]
    )  # zero times infinity
    assert (w.grad[0, 0].isnan() == sees).all() and w.grad[1].isfinite().all()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32, torch.complex128])
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (32768,), (100_003,), (3, 40_000), (70, 7, 111)])
def test_elements_under_masks(shape, dtype, threads):
    x = normal(*shape, dtype=torch.float32).mul(50).to(dtype)
    chosen = np.random.default_rng(1).random(shape)
    for share in (0.0, 0.03, 0.6, 1.0):
        mask = torch.from_numpy(chosen < share)
        n, m = x.numpy(), mask.numpy()
        np.testing.assert_array_equal(x[mask].numpy(), n[m])
        np.testing.assert_array_equal(torch.masked_select(x, mask).numpy(), n[m])
        np.testing.assert_array_equal(mask.nonzero().numpy(), np.argwhere(m))
        np.testing.assert_array_equal((x * mask.to(dtype)).nonzero().numpy(), np.argwhere(n * m))
        assert mask.count_nonzero().item() == m.sum()
        y = x.clone()
        y[mask] = torch.arange(int(m.sum())).to(dtype)
        expected = n.copy()
        expected[m] = torch.arange(int(m.sum())).to(dtype).numpy()
        np.testing.assert_array_equal(y.numpy(), expected)
        if len(shape) > 1:
            turned = x.transpose(0, 1)
            np.testing.assert_array_equal(
                turned[mask.transpose(0, 1)].numpy(), n.swapaxes(0, 1)[m.swapaxes(0, 1)]
            )
            np.testing.assert_array_equal(
                x[mask[:, 0, ...].any(-1) if mask.dim() > 2 else mask[:, 0]].numpy(),
                n[m[:, 0].any(-1) if m.ndim > 2 else m[:, 0]],
            )
            np.testing.assert_array_equal(
                torch.masked_select(x, mask[:1]).numpy(), n[np.broadcast_to(m[:1], shape)]
            )


@pytest.mark.parametrize("shape", [(50_000,), (400, 300), (3, 500, 64), (40, 100, 30), (2, 500, 30)])
def test_writes_that_meet_in_one_element_keep_their_order(shape, threads):
    rng = np.random.default_rng(2)
    for dim in range(len(shape)):
        size = shape[dim]
        at = rng.integers(0, size, 3 * size)
        values = rng.standard_normal([3 * size if d == dim else n for d, n in enumerate(shape)]).astype(
            "float32"
        )
        base = rng.standard_normal(shape).astype("float32")
        where = (slice(None),) * dim + (at,)
        added, written = base.copy(), base.copy()
        np.add.at(added, where, values)
        written[where] = values  # NumPy keeps the last one
        x, i, v = torch.from_numpy(base), torch.from_numpy(at), torch.from_numpy(values)
        np.testing.assert_array_equal(x.index_add(dim, i, v).numpy(), added)
        np.testing.assert_array_equal(x.index_copy(dim, i, v).numpy(), written)
        key = (*[slice(None)] * dim, i)
        y = x.clone()
        y[key] = v
        np.testing.assert_array_equal(y.numpy(), written)
        z = x.clone()
        z[key] = 7.0
        assert (z[key] == 7).all() and (z == 7).sum() == len(set(at.tolist())) * (x.numel() // size)


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.float64, torch.complex128]
)
def test_copies_in_other_orders(dtype, threads):
    for shape in [
        (33, 70),
        (8, 8),
        (130, 2),
        (2, 130),
        (3, 50, 9),
        (2, 17, 40, 3),
        (5, 4, 2, 16, 2),
        (9, 5, 40),
        (64, 1000),
    ]:
        x = torch.arange(int(np.prod(shape))).reshape(shape).to(dtype)
        n = x.float().numpy() if dtype == torch.bfloat16 else x.numpy()
        for order in [
            *[tuple(np.roll(range(len(shape)), k)) for k in range(len(shape))],
            tuple(range(len(shape)))[::-1],
        ]:
            copied = x.permute(*[int(d) for d in order]).contiguous()
            copied = copied.float() if dtype == torch.bfloat16 else copied
            np.testing.assert_array_equal(copied.numpy(), n.transpose(order))
        turned = torch.empty(shape[::-1], dtype=dtype).permute(*range(len(shape))[::-1])
        turned.copy_(x)
        assert (
            torch.equal(turned, x)
            and torch.equal(x.flip(-1).flip(-1), x)
            and torch.equal(x.flip(0).flip(0), x)
        )
        flipped = x.flip(0, -1).float() if dtype == torch.bfloat16 else x.flip(0, -1)
        np.testing.assert_array_equal(flipped.numpy(), n[::-1, ..., ::-1])


@pytest.mark.parametrize("shape", [(1003, 32), (3, 130, 128), (5, 9000)])
def test_batches_of_fourier_transforms(shape, threads):
    x = normal(*shape, dtype=torch.float64)
    for dim in range(len(shape)):
        np.testing.assert_allclose(
            torch.fft.rfft(x, dim=dim).numpy(), np.fft.rfft(x.numpy(), axis=dim), atol=1e-10
        )
        np.testing.assert_allclose(
            torch.fft.fft(x, dim=dim).numpy(), np.fft.fft(x.numpy(), axis=dim), atol=1e-10
        )
    np.testing.assert_allclose(torch.fft.fft2(x).numpy(), np.fft.fft2(x.numpy()), atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.uint8])
@pytest.mark.parametrize("shape", [(2000, 70), (300, 1100), (3, 70, 130), (5, 1)])
def test_extremes_and_sums_over_any_dimension(shape, dtype, threads):
    x = normal(*shape).mul(20).abs().to(dtype)
    if dtype.is_floating_point:
        x[..., 0][..., shape[-2] // 2] = float("nan")
    n = exact(x)[0]
    for dim in range(len(shape)):
        for name in ("max", "min"):
            values, indices = getattr(x, name)(dim)
            expected = getattr(n, "arg" + name)(dim)  # NumPy, too, takes the first NaN
            np.testing.assert_array_equal(indices.numpy(), expected)
            np.testing.assert_array_equal(exact(values)[0], getattr(n, name)(dim))
            np.testing.assert_array_equal(exact(getattr(x, "a" + name)(dim))[0], getattr(n, name)(dim))
        total = exact(x.sum(dim))[0]
        np.testing.assert_allclose(total, n.sum(dim), rtol=1e-2 if dtype == torch.bfloat16 else 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
@pytest.mark.parametrize("length", [1000, 5000, 70_000, 200_001])
def test_long_sorts(length, dtype, threads):
    x = normal(length).mul(100).to(dtype)
    if dtype.is_floating_point:
        x[::97] = float("nan")
    for descending in (False, True):
        values, indices = x.sort(descending=descending, stable=True)
        n = exact(x)[0]
        key = np.where(np.isnan(n), np.inf, n)
        expected = np.argsort(-key if descending else key, kind="stable")
        np.testing.assert_array_equal(indices.numpy(), expected)
        np.testing.assert_array_equal(exact(values)[0], n[expected])
        np.testing.assert_array_equal(exact(x.sort(descending=descending)[0])[0], n[expected])
    for k in (1, 5):
        values, indices = x.topk(k)
        np.testing.assert_array_equal(exact(values)[0], n[expected][:k])
        assert torch.equal(x[indices].nan_to_num(), values.nan_to_num())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int64])
def test_operands_that_lie_across_each_other(dtype, threads):
    a, b = normal(300, 257).mul(9).to(dtype), normal(257, 300, seed=1).mul(9).to(dtype)
    x, y = exact(a, b)
    step = 2**-7 if dtype == torch.bfloat16 else 1e-6
    np.testing.assert_allclose(exact(a + b.t())[0], x + y.T, rtol=step, atol=step)
    np.testing.assert_allclose(exact(b.t() + a)[0], x + y.T, rtol=step, atol=step)
    np.testing.assert_array_equal((a > b.t()).numpy(), x > y.T)
    np.testing.assert_allclose(exact(torch.addcmul(a, b.t(), b.t()))[0], x + y.T * y.T, rtol=2 * step, atol=1)
    np.testing.assert_allclose(exact(a.clone().mul_(b.t()))[0], x * y.T, rtol=step, atol=step)
    square = a[:257, :257].contiguous()
    np.testing.assert_allclose(
        exact(square - square.t())[0], exact(square)[0] - exact(square)[0].T, rtol=step
    )


def test_halves_of_all_values_survive_conversions():
    every = torch.arange(-32768, 32768, dtype=torch.int64).to(torch.int16).view(torch.float16)
    n = every.numpy()
    np.testing.assert_array_equal(every.float().numpy(), n.astype("float32"))
    np.testing.assert_array_equal(every.double().numpy(), n.astype("float64"))
    np.testing.assert_array_equal(every.float().half().numpy(), n)
    wide = torch.from_numpy(np.random.default_rng(5).standard_normal(70_003) * 1e3).float()
    np.testing.assert_array_equal(wide.half().numpy(), wide.numpy().astype("float16"))
    np.testing.assert_array_equal(
        every[:1001].bfloat16().float().numpy(), every[:1001].float().bfloat16().float().numpy()
    )


def test_gelu_and_clamps_at_their_ends():
    x = torch.tensor([-100.0, -6.0, -0.0, 0.0, 6.0, 100.0, float("inf"), float("-inf"), float("nan")]).repeat(
        9
    )
    y = torch.nn.functional.gelu(x).reshape(9, 9)[0]
    assert y[:2].abs().max() < 1e-6 and y[0] == 0 and y[4:7].tolist() == [6.0, 100.0, float("inf")]
    assert y[7].isnan() and y[8].isnan()
    spread = torch.linspace(-5, 5, 100_001)
    exact_gelu = torch.nn.functional.gelu(spread.double())
    assert (torch.nn.functional.gelu(spread).double() - exact_gelu).abs().max() < 1e-6
    assert (
        x.clamp(-1, 2).reshape(9, 9)[0].tolist()[:8] == [-1, -1, 0, 0, 2, 2, 2, -1]
        and x.clamp(-1, 2)[8].isnan()
    )
    assert x.clamp(float("nan"), 2).isnan().all() and x.clamp(max=float("nan")).isnan().all()
    assert x.to(torch.bfloat16).clamp(-1, 2).reshape(9, 9)[0].tolist()[:8] == [-1, -1, 0, 0, 2, 2, 2, -1]


def test_halves_where_onednn_may_not_use_what_the_processor_has():
    program = """
import rushlight as torch
import rushlight.nn.functional as F
x, w = torch.randn(2, 3, 9, 9), torch.randn(4, 3, 3, 3)
a, b = torch.randn(64, 64), torch.randn(64, 64)
half = torch.bfloat16
torch.testing.assert_close(F.conv2d(x.to(half), w.to(half)).float(), F.conv2d(x, w), rtol=0.05, atol=0.2)
torch.testing.assert_close((a.to(half) @ b.to(half)).float(), a @ b, rtol=0.05, atol=0.4)
"""
    limited = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}
    subprocess.run([sys.executable, "-c", program], env=limited, check=True, timeout=100)
