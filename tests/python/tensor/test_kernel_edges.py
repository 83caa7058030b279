"""Kernels at their edges: lines about as long as a block, operands that repeat, numbers around 32 bits."""

import numpy as np
import pytest

import rushlight as torch

LENGTHS = (1, 2, 7, 8, 9, 15, 16, 31, 32, 33, 35, 63, 64, 65, 100, 130)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32"])
@pytest.mark.parametrize("length", LENGTHS)
def test_reductions_of_short_lines(length, dtype):
    values = np.random.default_rng(length).integers(-8, 9, (5, length)).astype("float64")
    x = torch.from_numpy(values).to(getattr(torch, dtype))
    assert x.sum(-1).tolist() == values.sum(-1).tolist()
    assert x.amax(-1).tolist() == values.max(-1).tolist()
    assert x.amin(-1).tolist() == values.min(-1).tolist()
    if x.is_floating_point():
        norms = np.sqrt((values**2).sum(-1))
        assert np.allclose(x.norm(dim=-1).double().numpy(), norms, rtol=1e-2 if x.itemsize == 2 else 1e-6)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("where", [0, -1])
def test_extremes_find_every_nan(length, where):
    x = torch.arange(float(length)).repeat(3, 1)
    x[1, where] = float("nan")
    assert x.amax(-1).isnan().tolist() == x.amin(-1).isnan().tolist() == [False, True, False]
    x[1, where] = float("inf")
    assert x.amax(-1)[1].item() == float("inf")


def test_sums_of_what_repeats():
    row = torch.arange(12.0)
    for x in (row.expand(7, 12), row[:, None].expand(12, 7), row.reshape(3, 1, 4).expand(3, 5, 4)):
        full = x.clone()
        for dim in range(x.dim()):
            assert x.sum(dim).tolist() == full.sum(dim).tolist()
        assert x.sum().item() == full.sum().item() and x.amax().item() == 11


@pytest.mark.parametrize("limit", [2**31 - 1, 2**31, 2**40])
def test_products_of_whole_numbers_around_32_bits(limit):
    random = np.random.default_rng(0)
    a = random.integers(-limit - 1, limit, (19, 23))
    b = random.integers(-limit - 1, limit, (23, 21))
    a[0, 0], b[0, 0] = -limit - 1, limit - 1
    with np.errstate(over="ignore"):
        expected = a @ b
    assert (torch.from_numpy(a) @ torch.from_numpy(b)).tolist() == expected.tolist()
    turned = torch.from_numpy(np.ascontiguousarray(b.T)).T
    assert (torch.from_numpy(a) @ turned).tolist() == expected.tolist()
    assert (
        torch.addmm(torch.ones(19, 21, dtype=torch.int64), torch.from_numpy(a), turned, beta=2).tolist()
        == (expected + 2).tolist()
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_products_of_one_matrix_with_many(dtype):
    """Large enough for every library; a stride of 0 must not reach code that is for reference alone."""
    random = np.random.default_rng(0)
    one, many = random.standard_normal((48, 64)), random.standard_normal((40, 64, 56))
    x, y = (torch.from_numpy(v).to(getattr(torch, dtype)) for v in (one, many))
    close = dict(rtol=1e-4, atol=1e-3) if dtype != "bfloat16" else dict(rtol=0.05, atol=0.4)
    expected = one @ many
    assert np.allclose((x @ y).double().numpy(), expected, **close)
    assert np.allclose(torch.bmm(x.expand(40, 48, 64), y).double().numpy(), expected, **close)
    swapped = torch.bmm(y.mT, x.mT.expand(40, 64, 48)).double().numpy()
    assert np.allclose(swapped, expected.transpose(0, 2, 1), **close)


@pytest.mark.parametrize("shape", [(70000,), (300, 300), (1, 70000), (5000, 1)])
def test_equal_looks_at_all_elements(shape):
    x = torch.arange(float(np.prod(shape))).reshape(shape)
    assert torch.equal(x, x.clone())
    for place in (0, 1500, x.numel() - 1):
        y = x.clone()
        y.view(-1)[place] = -1
        assert not torch.equal(x, y) and not torch.equal(
            y.mT if y.dim() > 1 else y, x.mT if x.dim() > 1 else x
        )
    assert not torch.equal(x, x[:-1])


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather_and_scatter_in_a_column(dim):
    random = np.random.default_rng(1)
    x = random.standard_normal((6, 5, 4))
    index = random.integers(0, x.shape[dim], (6, 5, 1) if dim != 2 else (6, 5, 1))
    at = torch.from_numpy(index)
    expected = np.take_along_axis(x[:, :, :1] if dim != 2 else x, index, dim)
    assert torch.from_numpy(x).gather(dim, at).tolist() == expected.tolist()
    added, target = (
        torch.from_numpy(x).scatter_add(dim, at, torch.ones(6, 5, 1, dtype=torch.float64)),
        x.copy(),
    )
    for place in np.ndindex(6, 5, 1):
        to = list(place)
        to[dim] = index[place]
        target[tuple(to)] += 1
    assert np.allclose(added.numpy(), target)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "int64", "float32"])
def test_rows_that_meet_others(dtype):
    random = np.random.default_rng(2)
    base, rows = random.integers(-4, 5, (4, 150)), random.integers(-4, 5, (6, 150))
    at = np.array([0, 2, 2, 3, 0, 2])
    x, y = (torch.from_numpy(v).to(getattr(torch, dtype)) for v in (base, rows))
    expected = base.copy()
    np.add.at(expected, at, rows)
    assert x.index_add(0, torch.from_numpy(at), y).tolist() == expected.tolist()
    expected = base.copy()
    np.maximum.at(expected, at, rows)
    assert x.index_reduce(0, torch.from_numpy(at), y, "amax").tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_complex_of_parts(dtype):
    x, y = (torch.arange(37.0).to(getattr(torch, dtype)) * s for s in (1, -0.5))
    z = torch.complex(x, y)
    assert z.real.tolist() == x.tolist() and z.imag.tolist() == y.tolist()


@pytest.mark.parametrize("n", [1, 2, 3, 15, 16, 17, 40, 1000])
def test_linspace_ends_exactly(n):
    for dtype in (torch.float32, torch.float64, torch.int64, torch.bfloat16):
        x = torch.linspace(-3, 7, n, dtype=dtype)
        assert x[0].item() == -3 and (n == 1 or x[-1].item() == 7)
    expected = np.linspace(-3, 7, n)
    assert np.allclose(
        torch.linspace(-3, 7, n, dtype=torch.float64).numpy(), expected, rtol=1e-14, atol=1e-14
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("number", [2.0, 2.5, 0.1, -1e30, float("inf"), float("nan")])
def test_numbers_beside_halves_are_not_rounded(dtype, number):
    x = torch.linspace(-3, 3, 2000).to(getattr(torch, dtype))
    for operand in (x, x[:5], x.reshape(20, 100)[:1].expand(20, 100), x[::2]):
        expected = (operand.float() * torch.tensor(number)).to(operand.dtype)
        for product in (operand * number, operand * torch.tensor(number)):
            assert product.dtype == operand.dtype and torch.equal(product.nan_to_num(), expected.nan_to_num())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms_of_halves_are_those_of_floats(name, dtype):
    x = torch.tensor(
        [0.0, 1, -1, 2, 8, 0.125, 1000, -2, float("inf"), float("nan"), *torch.rand(300).tolist()]
    )
    x = torch.cat([x, -x]).to(getattr(torch, dtype))
    got, expected = getattr(x, name)().float(), getattr(x.float(), name)()
    assert torch.equal(got.isnan(), expected.isnan()) and torch.equal(got.isinf(), expected.isinf())
    finite = expected.isfinite()
    unit = 2.0**-10 if dtype == "float16" else 2.0**-7
    error = (got - expected)[finite].abs()
    assert (error <= unit * expected[finite].abs() + 1e-4).all()
    y = x.clone()
    assert torch.equal(getattr(y, name + "_")().float().nan_to_num(), got.nan_to_num())


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
def test_scans_of_halves(name):
    x = torch.linspace(0.5, 1.25, 6 * 40).half().reshape(6, 40)
    for operand in (x, x.T, x[:, ::3], x.double().half().reshape(2, 3, 40)):
        for dim in range(operand.dim()):
            got, expected = getattr(operand, name)(dim), getattr(operand.double(), name)(dim)
            assert got.dtype == torch.float16
            assert np.allclose(got.double().numpy(), expected.numpy(), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
@pytest.mark.parametrize("width", [1, 2, 33])
def test_sparse_rows_times_dense(dtype, width):
    random = np.random.default_rng(3)
    dense = random.integers(-3, 4, (20, 30)) * (random.random((20, 30)) < 0.3)
    dense[4] = 0
    other = random.integers(-3, 4, (30, width))
    a, b = (torch.from_numpy(v).to(getattr(torch, dtype)) for v in (dense, other))
    assert (a.to_sparse_csr() @ b).tolist() == (dense @ other).tolist()
    if width == 1:
        assert (a.to_sparse_csr() @ b[:, 0]).tolist() == (dense @ other)[:, 0].tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("width", [3, 15, 16, 17, 64, 90, 1040])
def test_bags_of_rows_of_any_width(width, dtype):
    values = np.random.default_rng(width).integers(-8, 9, (9, width)).astype("float64")
    table = torch.from_numpy(values).to(getattr(torch, dtype))
    indices, starts = [0, 8, 3, 3, 5, 1, 2, 7], [0, 1, 1, 6]
    for mode, combine in (("sum", np.sum), ("mean", np.mean)):
        got = torch.nn.functional.embedding_bag(
            torch.tensor(indices), table, torch.tensor(starts), mode=mode, padding_idx=2
        )
        for row, (begin, end) in zip(got.tolist(), zip(starts, [*starts[1:], 8], strict=True), strict=True):
            kept = [i for i in indices[begin:end] if i != 2]
            expected = combine(values[kept], axis=0) if kept else np.zeros(width)
            assert np.allclose(row, expected, rtol=1e-2 if table.itemsize == 2 else 1e-6)


@pytest.mark.parametrize("length", [8191, 8192, 20000, 20001])
def test_long_windows_are_those_of_their_formulas(length):
    for periodic in (False, True):
        t = np.arange(length) / (length if periodic else length - 1)
        expected = {
            "bartlett": 1 - np.abs(2 * t - 1),
            "hann": 0.5 - 0.5 * np.cos(2 * np.pi * t),
            "hamming": 0.54 - 0.46 * np.cos(2 * np.pi * t),
            "blackman": 0.42 - 0.5 * np.cos(2 * np.pi * t) + 0.08 * np.cos(4 * np.pi * t),
            "kaiser": np.i0(12 * np.sqrt(np.maximum(1 - (2 * t - 1) ** 2, 0))) / np.i0(12),
        }
        for name, values in expected.items():
            for dtype, error in ((torch.float32, 1e-7), (torch.float64, 1e-14)):
                got = getattr(torch, f"{name}_window")(length, periodic, dtype=dtype)
                assert got.shape == (length,) and got.dtype == dtype
                assert np.abs(got.numpy() - values).max() < error, name


def test_hashes_of_many_elements():
    random = np.random.default_rng(0)
    for shape in ((9001,), (130, 70), (3, 4097)):
        values = random.normal(size=shape).astype("float32")
        bits = values.astype("float64").view("int64")
        x = torch.from_numpy(values)
        for t in (x, x.t().contiguous().t() if x.dim() == 2 else x.flip(0)):
            assert t.hash_tensor().view(torch.int64).item() == np.bitwise_xor.reduce(bits, axis=None)
            lines = t.hash_tensor(dim=0).view(torch.int64)
            assert lines.tolist() == np.bitwise_xor.reduce(bits, axis=0).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mantissas_of_blocks(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    values = np.array([0.0, -0.0, 1.0, -3.5, np.inf, -np.inf, tiny, -5 * tiny] * 17, dtype)[:131]
    mantissa, exponent = torch.from_numpy(values).frexp()
    expected = np.frexp(values)
    finite = np.isfinite(values)
    assert mantissa.tolist() == expected[0].tolist()
    assert exponent.numpy()[finite].tolist() == expected[1][finite].tolist()


def test_powers_summed_in_one_pass():
    x = torch.arange(-5.0, 6.0)
    for t in (x, x.double(), x.half(), x.reshape(11, 1).expand(11, 3)):
        assert torch._foreach_powsum([t], 2)[0].item() == (t.double() ** 2).sum().item()
        assert torch._foreach_powsum([t], 3)[0].item() == (t.double().abs() ** 3).sum().item()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("beta", [0, 1])
def test_products_of_one_matrix_each_for_a_whole_batch(dtype, beta):
    """Both factors expanded: neither says how many there are."""
    a, b, c = (torch.randn(size).to(dtype) for size in ((100, 700), (700, 37), (3, 100, 37)))
    of_views = torch.baddbmm(c, a.expand(3, -1, -1), b.expand(3, -1, -1), beta=beta)
    of_copies = torch.baddbmm(c, a.repeat(3, 1, 1), b.repeat(3, 1, 1), beta=beta)
    assert torch.allclose(of_views.float(), of_copies.float(), atol=1e-3, rtol=2e-2)
