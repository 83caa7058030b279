"""Kernels with a short way for common layouts: it gives what the long way gives, NaN and ties included."""

import math

import numpy as np
import pytest

import rushlight as torch

FLOATS = [torch.float32, torch.float64]
LENGTHS = [1, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 129, 257, 1000]


def numbers(generator, n, dtype):
    values = generator.integers(-20, 20, n)
    return torch.tensor(values).to(dtype)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.int64, torch.int16, torch.bfloat16])
def test_the_first_of_equal_extremes_is_found(dtype, n):
    generator = np.random.default_rng(n)
    for _ in range(20):
        x = numbers(generator, 3 * n, dtype).view(3, n)
        values = np.array(x.to(torch.float64).tolist())
        assert x.argmax(1).tolist() == values.argmax(1).tolist()
        assert x.argmin(1).tolist() == values.argmin(1).tolist()
        assert x.max(1).values.tolist() == values.max(1).tolist()


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_first_nan_is_an_extreme(dtype, n):
    generator = np.random.default_rng(n)
    for _ in range(20):
        x = numbers(generator, n, dtype)
        places = generator.integers(0, n, 3)
        for place in places:
            x[place] = math.nan
        assert x.argmax().item() == x.argmin().item() == places.min()
        assert x.max(0).values.isnan() and x.min(0).indices.item() == places.min()
    infinite = torch.full((n,), -math.inf, dtype=dtype)
    assert infinite.argmax().item() == 0 and infinite.argmin().item() == 0


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_quantile_by_selection_is_that_by_sorting(dtype, how):
    generator = np.random.default_rng(0)
    x = torch.tensor(generator.standard_normal((4, 700))).to(dtype)
    x[1, 100:300] = 0.5
    x[2, 5] = math.nan
    for q in (0.0, 1.0, 0.5, 0.123, 0.9999):
        for dim, keepdim in ((1, False), (1, True), (0, False), (None, False), (None, True)):
            selected = x.quantile(q, dim, keepdim, interpolation=how)
            # With two ranks, or gradients, the lines are sorted.
            twice = torch.tensor([q, q], dtype=dtype)
            assert torch.equal(
                selected.nan_to_num(7), x.quantile(twice, dim, keepdim, interpolation=how)[0].nan_to_num(7)
            )
            recorded = x.clone().requires_grad_().quantile(q, dim, keepdim, interpolation=how)
            assert recorded.requires_grad and recorded.shape == selected.shape
            assert torch.equal(selected.nan_to_num(7), recorded.detach().nan_to_num(7))


@pytest.mark.parametrize(
    "itemsize", [torch.bool, torch.int16, torch.float32, torch.float64, torch.complex128]
)
def test_positions_in_a_vector(itemsize):
    x = torch.arange(50).to(itemsize)
    at = torch.tensor([[3, 0, 49], [7, 7, 1]])
    expected = torch.stack([torch.stack([x[i] for i in row]) for row in at.tolist()])
    assert torch.equal(x[at], expected)
    assert torch.equal(x[at - 50], expected)
    assert torch.equal(
        x[::2][at % 25], torch.stack([torch.stack([x[i % 25 * 2] for i in row]) for row in at.tolist()])
    )
    assert torch.equal(x.index_select(0, at[0]), expected[0])
    for wrong in (50, -51):
        with pytest.raises(IndexError):
            x[torch.tensor([0, wrong])]
    with pytest.raises(IndexError):
        x.index_select(0, torch.tensor([-1]))


@pytest.mark.parametrize("right", [False, True])
def test_searches_on_one_line_and_on_many(right):
    generator = np.random.default_rng(1)
    lines = torch.tensor(np.sort(generator.integers(0, 60, (5, 37)), 1))
    values = torch.tensor(generator.integers(-2, 63, (5, 41)))
    side = "right" if right else "left"
    many = torch.searchsorted(lines, values, right=right)
    order = torch.argsort(lines.flip(1), 1)
    assert torch.equal(torch.searchsorted(lines.flip(1), values, right=right, sorter=order), many)
    for line, value, found in zip(lines, values, many):
        expected = np.searchsorted(line.numpy(), value.numpy(), side)
        assert found.tolist() == expected.tolist()
        assert torch.searchsorted(line, value, right=right).tolist() == expected.tolist()


@pytest.mark.filterwarnings("ignore:.* does not have a deterministic implementation")
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_last_of_equal_positions_wins(threads):
    n = 100_000
    at, values = torch.randint(0, 1000, (n,)), torch.arange(n).float()
    last = torch.zeros(2 * n).scatter_reduce(0, at, values, "amax", include_self=False)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        assert torch.equal(torch.zeros(2 * n).put_(at, values), last)
        unpooled = torch.nn.functional.max_unpool1d(values[None, None], at[None, None], 2)
        assert torch.equal(unpooled.view(-1), last)
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32], ids=str
)
@pytest.mark.parametrize("values", [7, 1 << 20])
def test_elements_of_a_rank_of_long_lines(values, dtype):
    generator = np.random.default_rng(0)
    x = torch.tensor(generator.integers(-values, values, (3, 5000))).to(dtype)
    if dtype.is_floating_point:
        x[1, 17] = math.nan  # the last of all
    ordered = x.sort(1).values
    for k in (1, 2, 5, 2500, 4990, 4999, 5000):
        found, places = x.kthvalue(k, 1)
        torch.testing.assert_close(found, ordered[:, k - 1], rtol=0, atol=0, equal_nan=True)
        torch.testing.assert_close(x.gather(1, places[:, None])[:, 0], found, rtol=0, atol=0, equal_nan=True)
