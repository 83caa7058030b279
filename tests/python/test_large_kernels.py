"""Kernels on sizes that take their blocked, vectorised and parallel paths, against NumPy."""

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
