"""Loops made of vectors or of tables give what NumPy computes: special values, odd lengths, bool bytes."""

import numpy as np
import pytest

import rushlight as torch

SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e300,
    -1e300,
    5e-324,
    1e-310,
    2.5,
    -2.5,
    1.0,
    -1.0,
    3.0,
    1e17,
    0.1,
]


def same(tensor, expected):
    np.testing.assert_array_equal(tensor.numpy(), expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_frexp_of_special_values(dtype):
    with np.errstate(over="ignore"):
        x = np.array(SPECIAL + [1e-40, -3e-39, 6e-8, 65504.0], dtype)
    mantissa, exponent = np.frexp(x)
    got = torch.frexp(torch.from_numpy(x))
    same(got.mantissa, mantissa)
    finite = np.isfinite(x)
    np.testing.assert_array_equal(got.exponent.numpy()[finite], exponent[finite])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floor_division_of_special_values(dtype):
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL, dtype)
        x, y = (a.copy() for a in np.meshgrid(values, values))
        got = (torch.from_numpy(x) // torch.from_numpy(y)).numpy()
        plain = np.isfinite(x) & np.isfinite(y) & (y != 0) & (np.abs(x) < 1e16) & (np.abs(y) > 1e-300)
        np.testing.assert_array_equal(got[plain], (x // y)[plain])
        by_zero = (y == 0) & ~np.isnan(x)
        np.testing.assert_array_equal(got[by_zero], (x / y)[by_zero])
    assert np.isnan(got[np.isnan(x) | np.isnan(y)]).all()


def test_whole_numbers_divide_downwards():
    rng = np.random.default_rng(0)
    x, y = rng.integers(-(2**62), 2**62, 1001), rng.integers(1, 2**40, 1001) * rng.choice([-1, 1], 1001)
    same(torch.from_numpy(x) // torch.from_numpy(y), x // y)
    same(torch.from_numpy(x) % torch.from_numpy(y), x % y)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bfloat16]
)
def test_every_byte_but_zero_is_true(dtype):
    bytes_ = np.random.default_rng(0).integers(0, 4, 1001).astype(np.uint8)
    flags = torch.from_numpy(bytes_).view(torch.bool)
    same(flags.to(dtype).float(), (bytes_ != 0).astype(np.float32))
    same((~flags).to(torch.uint8), (bytes_ == 0).astype(np.uint8))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "float32", "complex64"])
@pytest.mark.parametrize("n", [1, 15, 64, 1001])
def test_negation_and_truth(dtype, n):
    x = np.random.default_rng(n).integers(0, 3, n).astype(dtype)
    t = torch.from_numpy(x)
    same(torch.logical_not(t), np.logical_not(x))
    same(t.bool(), x.astype(bool))
    if np.issubdtype(x.dtype, np.integer) or dtype == "bool":
        same(~t, ~x)


def test_threshold_of_halves():
    x = np.random.default_rng(0).normal(size=1001).astype(np.float16)
    expected = np.where(x > np.float16(0.5), x, np.float16(-2))
    same(torch.nn.functional.threshold(torch.from_numpy(x), 0.5, -2), expected)


@pytest.mark.parametrize(
    "low, high", [(0, 50), (-(2**62), 2**62), (-(2**63), -(2**63) + 9), (2**63 - 9, 2**63 - 1)]
)
def test_members_of_a_set(low, high):
    rng = np.random.default_rng(0)
    x, chosen = rng.integers(low, high, 1000), rng.integers(low, high, 20)
    x[:5] = chosen[:5]
    same(torch.isin(torch.from_numpy(x), torch.from_numpy(chosen)), np.isin(x, chosen))
    same(torch.isin(torch.from_numpy(x), torch.from_numpy(chosen), invert=True), ~np.isin(x, chosen))
    ends = np.array([-(2**63), 2**63 - 1])
    same(torch.isin(torch.from_numpy(ends), torch.from_numpy(chosen)), np.isin(ends, chosen))


@pytest.mark.parametrize("channels", [3, 16, 20, 83])
@pytest.mark.parametrize("last", [False, True])
def test_means_of_windows(channels, last):
    x = np.random.default_rng(0).normal(size=(2, channels, 12, 18))
    t = torch.from_numpy(x)
    if last:
        t = t.to(memory_format=torch.channels_last)
    got = torch.nn.functional.avg_pool2d(t, 3).numpy()
    np.testing.assert_allclose(got, x.reshape(2, channels, 4, 3, 6, 3).mean((3, 5)), atol=1e-12)
    got = torch.nn.functional.adaptive_avg_pool2d(t, (1, 5)).numpy()
    windows = [(o * 18 // 5, -((o + 1) * -18 // 5)) for o in range(5)]
    np.testing.assert_allclose(
        got[:, :, 0], np.stack([x[..., a:b].mean((2, 3)) for a, b in windows], -1), atol=1e-12
    )


@pytest.mark.parametrize("shape", [(8, 3), (31, 40), (64, 5)])
def test_transform_of_real_numbers_along_any_dimension(shape):
    x = np.random.default_rng(0).normal(size=shape + (3,))
    for dim in range(3):
        np.testing.assert_allclose(
            torch.fft.fft(torch.from_numpy(x), dim=dim).numpy(), np.fft.fft(x, axis=dim), atol=1e-10
        )
    got = torch.fft.fftn(torch.from_numpy(x), dim=(0, 1)).numpy()
    np.testing.assert_allclose(got, np.fft.fftn(x, axes=(0, 1)), atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [4, 5, 7, 8, 9, 13, 30])
def test_greatest_of_rows_of_any_width(width, dtype):
    random = np.random.default_rng(width)
    x = random.integers(-3, 4, (6, 5, width)).astype(dtype)  # equal numbers: the first place counts
    x[1, 3, width - 1] = x[1, 0, 0] = np.inf
    x[2] = -np.inf
    x[3, 2, width // 2] = np.nan
    x[4] = np.abs(x[4]) * -0.0
    flat = x.reshape(6, -1)
    values, places = torch.nn.functional.adaptive_max_pool2d(torch.from_numpy(x), 1, return_indices=True)
    same(values.flatten(), flat.max(1))
    same(places.flatten(), flat.argmax(1))


def test_reductions_over_repeated_elements():
    row = torch.tensor([[3.0, -7.0, 5.0]])
    x = row.expand(1000, 3)
    assert torch.amax(x) == 5 and torch.amin(x) == -7
    same(torch.amax(x, 0), row[0].numpy())
    same(torch.linalg.vector_norm(x, float("inf"), 1), np.full(1000, 7.0, "float32"))
    assert torch.sum(x) == 1000 and torch.linalg.vector_norm(x, 1) == 15000
    assert not torch.all(x > 0) and torch.any(x < 0)
    assert torch.amax(torch.tensor(2.0).expand(4, 5)) == 2
    with pytest.raises(IndexError):
        torch.amax(torch.ones(1, 3)[:0].expand(0, 3), 0)


@pytest.mark.parametrize("step", [2, 3])
@pytest.mark.parametrize("n", [1, 7, 511, 512, 513, 4099])
def test_reductions_of_elements_apart(n, step):
    for dtype in ("uint8", "bfloat16", "int32", "float32", "int64", "float64", "complex128"):
        whole = (torch.arange(n * step) % 7).to(getattr(torch, dtype))
        apart = whole[::step]
        assert apart.sum() == apart.clone().sum(), dtype
        if not dtype.startswith("complex"):
            assert apart.amax() == apart.clone().amax(), dtype


def bits_of(tensor):
    """Of halves, with one pattern for every NaN."""
    bits = tensor.view(torch.int16).numpy().copy()
    bits[tensor.isnan().numpy()] = 0x7E55
    return bits


HALVES = {
    "abs": torch.abs,
    "neg": torch.neg,
    "relu": torch.relu,
    "nan_to_num": torch.nan_to_num,
    "nan_to_num with numbers": lambda x: torch.nan_to_num(x, 0.5, 7.0, -8.0),
    "clamp_min": lambda x: torch.clamp_min(x, -0.75),
    "clamp_max": lambda x: torch.clamp_max(x, 1.5),
    "clamp_min of zero": lambda x: torch.clamp_min(x, 0.0),
    "clamp_max of nan": lambda x: torch.clamp_max(x, float("nan")),
}
PAIRS = {"maximum": torch.maximum, "minimum": torch.minimum, "copysign": torch.copysign}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", HALVES)
def test_every_half_by_its_bits_is_as_by_floats(name, dtype):
    x = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(dtype)
    f = HALVES[name]
    expected = bits_of(f(x.float()).to(dtype))
    if name.startswith("nan_to_num") and "with" not in name:  # the largest of the dtype, not of float
        most = torch.finfo(dtype).max
        expected = bits_of(torch.nan_to_num(x.float(), 0.0, most, -most).to(dtype))
    np.testing.assert_array_equal(bits_of(f(x)), expected)
    for part in (slice(3, 10), slice(100, 137), slice(0, None, 3)):
        np.testing.assert_array_equal(bits_of(f(x[part])), expected[part])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_halves_by_their_bits_are_as_by_floats(name, dtype):
    f = PAIRS[name]
    with np.errstate(over="ignore"):
        special = torch.from_numpy(np.array([*SPECIAL, 6e-8, -6e-8, 65504.0], np.float32)).to(dtype)
    x, y = (t.reshape(-1).contiguous() for t in torch.meshgrid(special, special, indexing="ij"))
    expected = bits_of(f(x.float(), y.float()).to(dtype))
    np.testing.assert_array_equal(bits_of(f(x, y)), expected)
    np.testing.assert_array_equal(bits_of(f(x[5:], y[5:])), expected[5:])
    for number in special:
        np.testing.assert_array_equal(bits_of(f(x, number)), bits_of(f(x.float(), number.float()).to(dtype)))
        np.testing.assert_array_equal(bits_of(f(number, x)), bits_of(f(number.float(), x.float()).to(dtype)))


@pytest.mark.parametrize("n", [1, 15, 16, 33, 100])
def test_truths_are_compared_and_chosen_whichever_bit_is_set(n):
    rng = np.random.default_rng(n)
    first, second = rng.integers(0, 256, (2, n), "uint8") * rng.integers(0, 2, (2, n), "uint8")
    x, y = torch.from_numpy(first).view(torch.bool), torch.from_numpy(second).view(torch.bool)
    a, b = first != 0, second != 0
    for f, expected in [
        (torch.eq, a == b),
        (torch.ne, a != b),
        (torch.lt, a < b),
        (torch.le, a <= b),
        (torch.gt, a > b),
        (torch.ge, a >= b),
        (torch.maximum, a | b),
        (torch.minimum, a & b),
    ]:
        got = f(x, y)
        same(got, expected)
        same(got.view(torch.uint8), expected.astype(np.uint8))
        same(f(x, y[0]), f(torch.from_numpy(a), torch.tensor(bool(b[0]))).numpy())
        same(f(x[0], y), f(torch.tensor(bool(a[0])), torch.from_numpy(b)).numpy())


@pytest.mark.parametrize("columns", [1, 2, 7, 8, 16, 31, 33, 99])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_distances_of_rows_of_any_length(columns, dtype, p):
    x = np.random.default_rng(columns).standard_normal((5, columns)).astype(dtype)
    pairs = [np.linalg.norm(x[i].astype("float64") - x[j], p) for i in range(5) for j in range(i + 1, 5)]
    np.testing.assert_allclose(torch.pdist(torch.from_numpy(x), p).numpy(), pairs, 1e-5)
    x[3, columns // 2] = np.nan
    missing = torch.pdist(torch.from_numpy(x), p).isnan().tolist()
    assert missing == [3 in (i, j) for i in range(5) for j in range(i + 1, 5)]


@pytest.mark.parametrize("shape", [(4, 33, 22), (5, 9), (3, 8, 3, 7)])
def test_slopes_of_channels_in_short_rows(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    weight = torch.linspace(-1, 1, shape[1])
    column = weight.reshape(-1, *[1] * (len(shape) - 2))
    expected = torch.where(x > 0, x, x * column)
    assert torch.equal(torch.nn.functional.prelu(x, weight), expected)
    turned = x.transpose(1, -1).contiguous().transpose(1, -1)
    assert torch.equal(torch.nn.functional.prelu(turned, weight), expected)


def test_equal_looks_at_all_elements_in_any_order():
    x = torch.arange(6000.0).reshape(60, 100)
    turned, apart = x.t().contiguous().t(), torch.stack([x, x], -1)[..., 0]
    for a in (x, turned, apart):
        for b in (x, turned, apart):
            assert torch.equal(a, b)
            for place in ((0, 0), (59, 99), (30, 1)):
                other = b.clone()
                other[place] += 1
                assert not torch.equal(a, other) and not torch.equal(other, a)
    x[5, 5] = np.nan
    assert not torch.equal(x, x.clone())


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("n", [1, 16, 100, 300])
def test_halves_and_whole_numbers_become_each_other(dtype, n):
    x = (np.random.default_rng(n).random(n) * 100).astype(np.float16)
    for part in (slice(None), slice(None, None, 2), slice(1, None, 3)):
        same(torch.from_numpy(x)[part].to(getattr(torch, dtype)), x[part].astype(dtype))
        whole = x.astype(dtype)
        same(torch.from_numpy(whole)[part].half(), whole[part].astype(np.float16))
