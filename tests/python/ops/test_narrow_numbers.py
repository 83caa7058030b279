"""Loops over halves, bytes and keys in fewer bits: odd lengths and offsets, special values, bounds."""

import numpy as np
import pytest

import rushlight as torch

LENGTHS = [1, 2, 15, 63, 64, 65, 257, 1000]


def every_half(dtype):
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
    return torch.from_numpy(bits.copy()).view(dtype)


def same_bits(got, expected):
    """Equal bits; NaN has many."""
    nan = got.isnan()
    assert torch.equal(nan, expected.isnan())
    bits = torch.int16 if got.element_size() == 2 else torch.int32
    assert torch.equal(got[~nan].view(bits), expected[~nan].view(bits))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("offset", [0, 1])
def test_bfloat16_by_pairs_is_as_by_floats(n, offset):
    torch.manual_seed(n)
    order = torch.randperm(1 << 16)
    every = every_half(torch.bfloat16)
    x, y, z = (every[order[i * 2000 : i * 2000 + n + offset]][offset:] for i in range(3))
    a, b, c = x.float(), y.float(), z.float()
    same_bits(x + y, (a + b).bfloat16())
    same_bits(x * y[:1], (a * b[:1]).bfloat16())
    same_bits(2.5 - x, (2.5 - a).bfloat16())
    same_bits(torch.nn.functional.leaky_relu(x, 0.25), torch.nn.functional.leaky_relu(a, 0.25).bfloat16())
    same_bits(torch.nn.functional.threshold(x, 0.5, 0.1), torch.where(a <= 0.5, 0.1, a).bfloat16())
    same_bits(torch.where(a > 0, x, x.clone().mul_(y)), torch.where(a > 0, a, a * b).bfloat16())
    close = torch.addcmul(x, y, z).float(), torch.addcmul(a, b, c).bfloat16().float()
    torch.testing.assert_close(*close, rtol=2**-7, atol=0, equal_nan=True)


def test_every_bfloat16_doubled():
    every = every_half(torch.bfloat16)
    same_bits(every + every, (every.float() + every.float()).bfloat16())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("n", LENGTHS)
def test_extremes_of_halves(dtype, n):
    torch.manual_seed(n)
    every = every_half(dtype)
    numbers = every[~every.isnan()]
    x = numbers[torch.randperm(len(numbers))[:n]]
    for name in ("amax", "amin"):
        assert torch.equal(getattr(x, name)().float(), getattr(x.float(), name)())
        assert torch.equal(getattr(x.expand(3, n), name)(1).float(), getattr(x.float().expand(3, n), name)(1))
    for nan in every[every.isnan()][[0, -1]]:
        for at in (0, n // 2, n - 1):
            y = x.clone()
            y[at] = nan
            assert y.amax().isnan() and y.amin().isnan()


@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8])
@pytest.mark.parametrize("n", LENGTHS)
def test_bytes_are_rounded_to_even_and_kept_within_bounds(dtype, n):
    low, high = (0, 255) if dtype == torch.quint8 else (-128, 127)
    values = np.resize(
        np.array([0.5, 1.5, -0.5, 2.5, 1e30, -1e30, np.inf, -np.inf, 3.25, -127.5], np.float32), n
    )
    got = torch.quantize_per_tensor(torch.from_numpy(values), 1.0, 3, dtype).int_repr().numpy()
    np.testing.assert_array_equal(got, np.clip(np.rint(values + np.float32(3)), low, high))
    nan = torch.quantize_per_tensor(torch.full((n,), float("nan")), 1.0, 3, dtype).int_repr()
    assert (nan == high).all()
    scales, zeros = torch.full((n,), 0.5), torch.full((n,), 3, dtype=torch.int64)
    by_channel = torch.quantize_per_channel(torch.from_numpy(values), scales, zeros, 0, dtype).int_repr()
    np.testing.assert_array_equal(by_channel.numpy(), np.clip(np.rint(values * 2 + np.float32(3)), low, high))


@pytest.mark.parametrize(
    "low, high", [(0, 50), (-9, 9), (-(2**31), 2**31), (2**40, 2**40 + 99), (-(2**63), 2**63), (2**62, 2**63)]
)
@pytest.mark.parametrize("n", [70, 1100, 5000])
def test_whole_numbers_are_ordered_whatever_their_range(low, high, n):
    x = np.random.default_rng(n).integers(low, high, (3, n), dtype=np.int64)
    x[:, 5], x[:, 9] = low, high - 1
    values, positions = torch.sort(torch.from_numpy(x), stable=True)
    np.testing.assert_array_equal(values.numpy(), np.sort(x))
    np.testing.assert_array_equal(positions.numpy(), np.argsort(x, kind="stable"))
    for k in (3, n // 5):
        values, positions = torch.topk(torch.from_numpy(x), k)
        np.testing.assert_array_equal(values.numpy(), -np.sort(-(x.astype(object)))[:, :k].astype(np.int64))
        np.testing.assert_array_equal(np.take_along_axis(x, positions.numpy(), 1), values.numpy())


@pytest.mark.parametrize("shape", [(2, 3, 24, 40), (2, 3, 8, 9, 10)])
@pytest.mark.parametrize("points", [2, 30])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_inputs_are_sampled_where_they_lie(shape, points, mode):
    torch.manual_seed(0)
    x = torch.randn(shape)
    grid = torch.rand(2, *[points] * (len(shape) - 2), len(shape) - 2) * 2.4 - 1.2
    laid_out = [
        x.transpose(-1, -2),
        x[..., ::2],
        x[..., 1:],
        x[:1].expand(shape),
        x.transpose(0, 1)[:2, :2],
        torch.complex(x, x).conj().imag,
    ]
    for padding in ("zeros", "border", "reflection"):
        for given in laid_out:
            options = {"mode": mode, "padding_mode": padding, "align_corners": False}
            got = torch.nn.functional.grid_sample(given, grid, **options)
            want = torch.nn.functional.grid_sample(given.contiguous().clone(), grid, **options)
            assert torch.equal(got, want)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("n", [1, 64, 255, 256, 777])
def test_steps_of_halves_are_steps_of_floats(dtype, n):
    torch.manual_seed(n)
    p, g, b = (torch.randn(n).to(dtype) for _ in range(3))
    options = {
        "weight_decay": 0.5, "momentum": 0.75, "lr": 0.25, "dampening": 0.0, "nesterov": True,
        "maximize": False, "is_first_step": False,
    }  # fmt: skip
    wide = [t.float() for t in (p, g, b)]
    torch._fused_sgd_([wide[0]], [wide[1]], [wide[2]], **options)
    torch._fused_sgd_([p], [g], [b], **options)
    same_bits(p, wide[0].to(dtype))
    same_bits(b, wide[2].to(dtype))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_every_formula_gives_its_last_elements_what_it_gives_them_alone(dtype):
    """The ends of rows go through buffers; a product with 6 elements beyond full vectors had lost these."""
    pointwise, inputs, numbers = torch.ops.aten._fused_pointwise.default, [], [0.25, 0.5, 0.75]
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        inputs.append((torch.rand(150, generator=generator) * 0.8 + 0.1).to(dtype))
    tried = 0
    for number, name in enumerate(torch._C._formula_names()):
        for operands in ([0], [0, 1], [0, 1, 2], [0, 1, 2, 0], [0, 1, 2, 0, 1]):
            code = [1, number, *operands, 1, 6]
            try:
                (whole,) = pointwise(inputs, code, numbers, dtype)
            except ValueError:
                continue  # of another number of operands, or without a loop in halves
            ones = ([x[k : k + 1] for x in inputs] for k in range(150))
            alone = torch.cat([pointwise(one, code, numbers, dtype)[0] for one in ones])
            assert torch.equal(torch.nan_to_num(whole), torch.nan_to_num(alone)), name
            tried += 1
            break
    assert tried > 140
