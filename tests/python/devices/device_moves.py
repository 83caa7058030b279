"""Copies, conversions and indexing in the shapes that kernels tell apart: whole vectors, odd tails, rows that
do not lie in steps of 16 bytes. test_cuda.py runs them on the emulated device."""

import sys

import pytest
from device_work import both

import rushlight as torch
import rushlight.nn.functional as F

DTYPES = [torch.bool, torch.uint8, torch.int16, torch.int64, torch.bfloat16, torch.float32, torch.float64]
DTYPES += [torch.complex64, torch.complex128]
WIDTHS = [8, 7, 64, 33]


def equal(f, *tensors):
    for there, here in both(f, *tensors):
        torch.testing.assert_close(there, here, rtol=0, atol=0, equal_nan=True)


def matrix(rows, columns, dtype):
    if dtype.is_complex:
        return torch.randn(rows, columns, dtype=dtype)
    return (torch.randn(rows, columns) * 50).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_moves(width, dtype):
    m = matrix(6, width, dtype)
    equal(lambda t: t.flip(1), m)
    equal(lambda t: t.flip(0), m)
    equal(lambda t: t.t().contiguous(), m)
    equal(lambda t: t[:, 1:].contiguous(), m)
    equal(lambda t: t[1:, ::2].contiguous(), m)
    equal(lambda t: t.repeat(2, 3), m)
    equal(lambda t: t.roll(1, 1), m)
    equal(lambda t: F.pad(t, (1, 2)), m)
    equal(lambda t: t.tril(), m)
    equal(lambda t: t.triu(1), m)
    equal(lambda t: t.t().tril(-1), m)

    def filled(t):
        t = t.clone()
        t[:, 1:].fill_(1)
        t[2].zero_()
        return t

    equal(filled, m)


@pytest.mark.parametrize("dtype", [t for t in DTYPES if not t.is_complex])
@pytest.mark.parametrize("width", WIDTHS)
def test_conversions_and_choices(width, dtype):
    m = matrix(6, width, dtype).abs()
    for to in (
        torch.float32,
        torch.bfloat16,
        torch.half,
        torch.int64,
        torch.uint8,
        torch.bool,
        torch.float64,
    ):
        equal(lambda t, to=to: t.to(to), m)
        equal(lambda t, to=to: t.t().to(to), m)
        equal(lambda t, to=to: t[:, 1:].to(to), m)
    equal(lambda t: torch.where(t > 20, t, 0), m)
    equal(lambda t: torch.where(t > 20, t[:1], t[:, :1]), m)
    equal(lambda t: torch.where(t > 20, t, t.double()), m)
    equal(lambda t: t.masked_fill(t > 20, 1), m)
    if dtype != torch.bool:
        equal(lambda t: t + t[:1], m)
        equal(lambda t: t[:, :1] * t, m)
        equal(lambda t: t.flip(1) > t[0], m)
        equal(lambda t: t + t[:, :1].double(), m)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_positions(width, dtype):
    m, index = matrix(6, width, dtype), torch.tensor([3, 0, 5, 4, 1])
    for f in (
        lambda t, i: t[i],
        lambda t, i: t[i - 6],
        lambda t, i: t[:, i],
        lambda t, i: t[i, i],
        lambda t, i: t[:, 1:][i],
        lambda t, i: t.index_select(1, i),
        lambda t, i: t.index_copy(0, i[:2], t[:2]),
        lambda t, i: t.index_put((i,), t[:5]),
        lambda t, i: t.index_fill(0, i[:2], 1),
        lambda t, i: t.gather(0, i[:, None].expand(5, t.shape[1])),
        lambda t, i: t.gather(1, i.expand(6, 5)),
        lambda t, i: t.scatter(0, i[:1, None].expand(1, t.shape[1]), t),
    ):
        equal(f, m, index)


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int32, torch.int64, torch.bfloat16, torch.half, torch.float32]
)
@pytest.mark.parametrize("width", WIDTHS)
def test_sums_at_positions(width, dtype):
    m, index = torch.randint(0, 9, (6, width)).to(dtype), torch.tensor([3, 0, 3, 4, 3])
    for f in (
        lambda t, i: t.index_add(0, i, t[:5]),
        lambda t, i: t.index_put((i,), t[:5], accumulate=True),
        lambda t, i: t.scatter_add(0, i[:, None].expand(5, t.shape[1]), t),
        lambda t, i: t[:, 1:].index_add(0, i, t[:5, 1:]),
        lambda t, i: t.scatter_reduce(0, i[:, None].expand(5, t.shape[1]), t, "amax"),
    ):
        equal(f, m, index)


NUMBERS = [torch.uint8, torch.bfloat16, torch.float32, torch.float64, torch.complex128]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_rows_become_columns(dtype):
    m = (torch.randn(3, 70, 5, 45) * 50).to(dtype)
    for order in ((0, 2, 3, 1), (3, 2, 1, 0), (1, 3, 2, 0), (0, 3, 1, 2), (2, 1, 3, 0)):
        equal(lambda t, o=order: t.permute(o).contiguous(), m)
        equal(lambda t, o=order: t[:, 1:, :, 2:].permute(o).contiguous(), m)
    equal(lambda t: t.flatten(0, 1).flatten(1).t().contiguous(), m)
    equal(lambda t: t.contiguous(memory_format=torch.channels_last), m)
    equal(lambda t: t.transpose(1, 3).expand(2, 3, 45, 5, 70).contiguous(), m)
    equal(lambda t: torch.zeros(45, 70, 9, dtype=dtype, device=t.device)[..., 1].copy_(t[0, :, 0].t()), m)


FLOAT8 = [getattr(torch, f"float8_{kind}") for kind in ("e5m2", "e4m3fn", "e5m2fnuz", "e4m3fnuz", "e8m0fnu")]


@pytest.mark.parametrize("dtype", FLOAT8)
def test_conversions_of_eight_bits(dtype):
    codes = torch.arange(256, dtype=torch.uint8).view(dtype)
    numbers = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    if dtype == torch.float8_e8m0fnu:
        numbers = numbers.abs()  # it has no sign

    def same(f, x):
        here, there = f(x), f(x.cuda()).cpu()
        assert here.dtype == there.dtype
        if here.dtype in FLOAT8:
            here, there = here.view(torch.uint8), there.view(torch.uint8)
        assert (
            torch.equal(here.nan_to_num(-1.5), there.nan_to_num(-1.5))
            if here.is_floating_point()
            else (torch.equal(here, there))
        )

    finite = codes[codes.float().isfinite()]
    for wide in (torch.float32, torch.float64, torch.bfloat16, torch.half, torch.float8_e5m2, torch.bool):
        same(lambda x, to=wide: x.to(to), codes)
    same(lambda x: x.to(torch.int32), finite[finite.float().abs() < 2**31])
    same(lambda x: x.to(torch.complex64).real, finite)
    for narrow in (numbers, numbers.float(), numbers.double(), torch.arange(-300, 300)):
        same(lambda x: x.to(dtype), narrow)
    same(lambda x: x.view(16, 16).t().float(), codes)
    same(lambda x: x.view(-1, 8)[:, ::3].to(dtype), numbers.float())
    with pytest.raises(NotImplementedError, match="not implemented for"):
        codes.view(16, 16).cuda() @ codes.view(16, 16).cuda()
    assert torch.ones(2, device="cuda").sum().item() == 2  # nothing was lost


def test_halves_of_complex_numbers():
    x = torch.randn(5, 2).half()
    small = torch.view_as_complex(x).cuda()
    assert torch.equal(torch.view_as_real(small.to(torch.complex64)).cpu(), x.float())
    assert torch.equal(torch.view_as_real(small.to(torch.complex64).to(small.dtype)).cpu(), x)


def test_quantised_numbers_stay_on_the_cpu():
    x = torch.tensor([1.0, 2.0])
    for make in (
        lambda: torch.quantize_per_tensor(x.cuda(), 0.1, 0, torch.qint8),
        lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).cuda(),
        lambda: torch.quantize_per_channel(x.cuda(), x.cuda(), x.long().cuda(), 0, torch.quint8),
    ):
        with pytest.raises(NotImplementedError, match="quantized tensors live on the CPU"):
            make()


def test_positions_that_would_be_overwritten_are_refused():
    x = torch.tensor([2, 0, 1]).cuda()
    with pytest.raises(RuntimeError, match="unsupported operation"):
        x[x] = 0 * x
    x[x.clone()] = 0 * x
    assert x.tolist() == [0, 0, 0]


def test_gradients_of_indexed_rows():
    x = torch.randn(6, 8).cuda().requires_grad_()
    rows = torch.tensor([1, 1, 4]).cuda()
    (first,) = torch.autograd.grad((x[rows] ** 2).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.cpu()[:, 0].tolist() == [0, 4, 0, 0, 2, 0]


READ = {
    "index": lambda x, at: x[at],
    "index_select": lambda x, at: x.index_select(0, at),
    "gather": lambda x, at: x.gather(0, at[:, None].expand(-1, x.size(1))),
    "embedding": lambda x, at: F.embedding(at, x),
}


@pytest.mark.parametrize("name", READ)
def test_gradients_of_reads_take_the_memory_of_one_result(name):
    x = torch.randn(512, 1024, device="cuda", requires_grad=True)
    out = READ[name](x, torch.arange(4, device="cuda"))
    flow = torch.ones_like(out)
    torch.cuda.synchronize()
    start = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    (grad,) = torch.autograd.grad(out, x, flow)
    assert torch.cuda.max_memory_allocated() - start < 1.5 * grad.nbytes


@pytest.mark.parametrize("shape", [(2, 3, 5, 8), (2, 8, 6, 6), (1, 1, 3, 3)])
def test_nearest_and_unfolded(shape):
    image = torch.randn(shape)
    for options in ({"scale_factor": 2}, {"size": (7, 9)}, {"scale_factor": 2, "mode": "nearest-exact"}):
        equal(lambda t, o=options: F.interpolate(t, **o), image)
        equal(lambda t, o=options: F.interpolate(t.half(), **o), image)
        equal(lambda t, o=options: F.interpolate(t.contiguous(memory_format=torch.channels_last), **o), image)
    equal(lambda t: F.unfold(t, 3, padding=1), image)
    equal(lambda t: F.unfold(t, (2, 3), stride=2), image)


def test_large_images_unfolded():  # a thread for each place of the output
    equal(
        lambda t: F.unfold(t, (3, 2), padding=2, stride=(1, 2), dilation=(2, 1)), torch.randn(3, 64, 60, 61)
    )


def test_probabilities_in_memory():
    p = torch.rand(1001, 7).cuda()
    torch.cuda.manual_seed(3)
    drawn = torch.bernoulli(p)
    torch.cuda.manual_seed(3)
    assert torch.equal(torch.empty_like(p).bernoulli_(p), drawn)
    assert not torch.equal(torch.bernoulli(p), drawn)
    assert set(drawn.cpu().unique().tolist()) == {0.0, 1.0}
    for low in (0.0, 0.25, 0.5, 0.75):
        among = (p >= low) & (p < low + 0.25)
        assert abs((drawn[among] - p[among]).mean().item()) < 0.05
    assert torch.bernoulli(torch.ones(5).cuda()).sum().item() == 5
    assert torch.bernoulli(torch.zeros(5, dtype=torch.float64).cuda()).sum().item() == 0
    assert torch.bernoulli(p.t(), 0.5).shape == (7, 1001)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.half, torch.bfloat16])
@pytest.mark.parametrize("shape", [(64, 8), (64, 7), (3, 333), (4, 2)])
def test_dropout(shape, dtype):
    x = torch.randn(shape, dtype=dtype).cuda().requires_grad_()
    for given in (x, x.t(), x[:, 1:]):
        torch.cuda.manual_seed(1)
        y = F.dropout(given, 0.25)
        assert given.shape == y.shape
        mask = (y != 0).to(dtype)
        torch.testing.assert_close(y, given * mask / 0.75)
        (gradient,) = torch.autograd.grad(y, given, torch.ones_like(y))
        torch.testing.assert_close(gradient, mask / 0.75)
    assert (
        abs((F.dropout(torch.ones(100_000, dtype=dtype).cuda(), 0.3) != 0).double().mean().item() - 0.7)
        < 0.01
    )


def test_refused_weights():
    for weights in ([1.0, float("nan")], [1.0, -1.0], [1.0, float("inf")]):
        with pytest.raises(RuntimeError, match="contains either `inf`, `nan` or element < 0"):
            torch.tensor(weights).cuda().multinomial(1)
    with pytest.raises(RuntimeError, match="sum of probabilities <= 0"):
        torch.tensor([[0.0, 0.0], [1.0, 1.0]]).cuda().multinomial(1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [2, 5, 200])
def test_joining_many(count, dtype):
    """Tensors of a list in one launch, by as wide words as all of them begin and end at."""
    lines = [matrix(3, 1 + i % 7, dtype) for i in range(count)]
    equal(lambda *ts: torch.cat(ts, 1), *lines)
    equal(lambda *ts: torch.cat([t.flatten() for t in ts]), *lines)
    equal(lambda *ts: torch.cat([t.flatten()[1:] for t in ts]), *lines)
    equal(lambda *ts: torch.stack([t[0, 0] for t in ts]), *lines)
    equal(lambda *ts: torch.stack([t[:, 0].contiguous() for t in ts], 1), *lines)
    equal(lambda *ts: torch.cat([ts[0][:, :0], *ts, ts[0].new_empty(0)], 1), *lines)
    wide = [matrix(4, 16, dtype) for _ in range(count)]
    equal(lambda *ts: torch.cat(ts), *wide)
    equal(lambda *ts: torch.cat(ts, 1), *wide)
    equal(lambda *ts: torch.cat([ts[0].t(), *ts[1:5]], 0), *(matrix(4, 4, dtype) for _ in range(count)))


def test_masks_as_indices():
    for dtype in DTYPES:
        m, mask = matrix(40, 33, dtype), torch.rand(40, 33) < 0.4
        equal(lambda t, k: t[k], m, mask)
        equal(lambda t, k: t.t()[k.t()], m, mask)
        equal(lambda t, k: t[k[:, 0]], m, mask)
        equal(lambda t, k: t[k & False], m, mask)


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", __file__]))
