"""Sorting, selecting, searching and counting on a device; test_cuda.py runs them on the emulated one."""

import sys

import pytest
from device_layers import HALVES, compare, computed_there

import rushlight as torch
import rushlight.nn.functional as F

NAN, INF = float("nan"), float("inf")


def same(f, *tensors, exact=True):
    """f on the device and on the CPU; exact: the same bits."""
    there, here = (f(*(t.to(d) for t in tensors)) for d in ("cuda", "cpu"))
    for a, b in zip(*([r] if isinstance(r, torch.Tensor) else list(r) for r in (there, here)), strict=True):
        assert a.device.type == "cuda" and a.dtype == b.dtype
        rtol, atol = (0, 0) if exact else (1e-5, 1e-5)
        torch.testing.assert_close(a.cpu(), b, equal_nan=True, rtol=rtol, atol=atol)


def special(t):
    """A few elements that order has its own rules for."""
    if t.is_floating_point() and t.numel() > 9:
        t.view(-1)[torch.tensor([3, 5, 7, 8])] = torch.tensor([NAN, INF, 0.0, -0.0], dtype=t.dtype)
    return t


def drawn(*shape, dtype=torch.float32):
    """Many equal elements."""
    whole = torch.randint(0 if dtype == torch.uint8 else -9, 90, shape)
    return special((whole / 4).to(dtype) if dtype.is_floating_point else whole.to(dtype))


# A block sorts up to 4096 elements; lines are sorted together, by keys of 32 or 64 bits or in turn, or alone.
LINES = [(3, 128), (3, 129), (2, 1025), (2, 4096), (3, 4097), (1, 5000), (70, 4100)]


@pytest.mark.parametrize("shape", LINES)
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.bfloat16, torch.uint8, torch.bool])
def test_long_lines(shape, dtype):
    x = drawn(*shape, dtype=dtype)
    for descending in (False, True):
        same(lambda t, o=descending: torch.sort(t, dim=-1, descending=o, stable=True), x)
        same(lambda t, o=descending: torch.argsort(t, dim=-1, descending=o, stable=True), x)
    there = x.cuda().sort(dim=-1)[0].cpu()
    if dtype == torch.float32:  # zeros keep their signs, by position
        here = torch.sort(x, dim=-1, stable=True)[0]
        assert torch.equal(there.signbit(), here.signbit())
    same(lambda t: torch.sort(t, dim=0, stable=True)[0], x.t().contiguous())


@pytest.mark.parametrize("n", [5, 256, 257, 1500, 4097, 20000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float16])
def test_first_elements(n, dtype):
    x = drawn(2, n, dtype=dtype)
    for k in (1, 3, 100, 300, 1100):
        if k > n:
            continue
        for largest in (False, True):
            values, places = torch.topk(x.cuda(), k, largest=largest)
            ordered, order = torch.sort(x, dim=-1, descending=largest, stable=True)
            torch.testing.assert_close(values.cpu(), ordered[:, :k], rtol=0, atol=0, equal_nan=True)
            assert torch.equal(places.cpu(), order[:, :k])  # of equal elements the first
    same(lambda t: torch.topk(t, 2, dim=0)[0], x.t().contiguous())


@pytest.mark.parametrize("n", [1, 2, 128, 129, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bfloat16])
def test_single_elements(n, dtype):
    computed_there("kthvalue", "median", "nanmedian", "mode")
    x = drawn(3, n, dtype=dtype)
    for f in (torch.median, torch.nanmedian, torch.mode):
        same(lambda t, f=f: f(t, -1)[0], x)
        same(lambda t, f=f: f(t, 0, keepdim=True)[0], x)
        at = f(x.cuda(), -1)[1].cpu()
        values = f(x, -1)[0]
        torch.testing.assert_close(x.gather(1, at[:, None])[:, 0], values, equal_nan=True, rtol=0, atol=0)
    same(torch.median, x)
    same(torch.nanmedian, x)
    for k in (1, n):
        same(lambda t, k=k: torch.kthvalue(t, k, 1)[0], x)
    if dtype == torch.float32:
        compare(lambda t: t.median(0)[0], torch.randn(5, 6))
        compare(lambda t: t.quantile(0.3, dim=1), torch.randn(5, 6))


def test_single_elements_of_a_long_line():
    x = torch.randn(140000)
    same(lambda t: t.median(0), x)
    same(lambda t: t.kthvalue(77777), x)
    x[5] = NAN
    same(torch.median, x)
    same(torch.nanmedian, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float16])
def test_search(dtype):
    computed_there("searchsorted", "bucketize", "isin")
    for length, count in ((1, 7), (33, 5000), (9000, 300)):
        line, values = torch.sort(drawn(length, dtype=dtype)[:length])[0], drawn(count, dtype=dtype)
        for right in (False, True):
            same(lambda s, v, r=right: torch.searchsorted(s, v, right=r), line, values)
            same(lambda s, v, r=right: torch.bucketize(v, s, right=r, out_int32=True), line, values)
        same(lambda s, v: torch.isin(v, s), line[::2].contiguous(), values)
    lines, order = torch.sort(drawn(4, 50, dtype=dtype), dim=-1)
    same(torch.searchsorted, lines, drawn(4, 9, dtype=dtype))
    unsorted = lines.gather(1, torch.argsort(order, dim=-1))
    same(lambda s, v, o: torch.searchsorted(s, v, sorter=o), unsorted, drawn(4, 9, dtype=dtype), order)
    same(lambda s: torch.searchsorted(s, 3), lines[0].contiguous())


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.float32, torch.int64, torch.complex64])
def test_flags(dtype):
    computed_there("nonzero", "nonzero_static", "masked_select", "masked_scatter")
    for shape in ((), (1,), (4095,), (4096,), (70, 301), (3, 4, 5, 6), (9000,)):
        x = (torch.rand(shape) < 0.4).to(dtype)
        same(torch.nonzero, x)
        same(lambda t: torch.nonzero_static(t, size=50), x)
        mask = torch.rand(shape) < 0.3
        same(lambda t, m: t[m], x, mask)
        source = torch.arange(max(x.numel(), 1)).to(dtype)
        same(lambda t, m, s: t.masked_scatter(m, s), x, mask, source)
    wide = (torch.rand(40, 50) < 0.5).to(dtype)
    same(lambda t: t.t().nonzero(), wide)
    same(lambda t: t[:, ::2][t[:, ::2] != 0], wide)
    same(torch.nonzero, torch.zeros(5, 5).to(dtype))
    if dtype == torch.float32:
        chosen = torch.rand(6, 7) < 0.5
        compare(lambda t: t[chosen.to(t.device)] * 2, torch.randn(6, 7))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.float32])
def test_distinct(dtype):
    computed_there("_unique2", "unique_dim", "unique_consecutive")
    for n in (0, 1, 50, 5000):
        x = torch.randint(0, 40, (n,)).to(dtype)
        same(torch.unique, x)
        for f in (torch.unique, torch.unique_consecutive):
            same(lambda t, f=f: f(t, return_inverse=True, return_counts=True), x)
    rows = torch.randint(0, 2, (300, 4)).to(dtype)
    for dim in (0, 1):
        same(lambda t, d=dim: torch.unique(t, dim=d, return_inverse=True, return_counts=True), rows)
        same(lambda t, d=dim: torch.unique_consecutive(t, dim=d, return_counts=True), rows)
    assert torch.tensor([NAN, 1.0, NAN]).cuda().unique().isnan().sum() == 2


@pytest.mark.parametrize("bins", [1, 100, 5000, 20000])
def test_counts(bins):
    computed_there("bincount", "histc")
    x = torch.randint(0, bins, (30000,))
    for dtype in (torch.int64, torch.int32) + ((torch.uint8,) if bins < 256 else ()):
        same(lambda t: torch.bincount(t, minlength=7), x.to(dtype))
    weights = torch.rand(30000)
    same(torch.bincount, x, weights, exact=False)
    same(torch.bincount, x, weights.double(), exact=False)
    real = torch.randn(20001)
    for dtype in (torch.float32, torch.float64, torch.float16):
        same(lambda t: torch.histc(t, min(bins, 500)), real.to(dtype))
        same(lambda t: torch.histc(t, min(bins, 500), -1, 2), real.to(dtype))
    real[3] = NAN
    same(lambda t: torch.histc(t, bins, -1, 2), real)
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.bincount(torch.tensor([1, -1]).cuda())
    with pytest.raises(RuntimeError, match="not finite"):
        torch.histc(real.cuda(), 3)
    torch.use_deterministic_algorithms(True)
    try:
        same(torch.bincount, x, weights)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample(mode, padding, align):
    computed_there("grid_sampler_2d", "grid_sampler_3d", "_grid_sampler_backward")

    def sample(x, points):
        return F.grid_sample(x, points.to(x), mode=mode, padding_mode=padding, align_corners=align)

    grid = torch.rand(2, 4, 5, 2) * 2.6 - 1.3
    for channels in (1, 19):
        compare(sample, torch.randn(2, channels, 6, 7), grid, atol=1e-4, rtol=1e-4)
    image = torch.randn(2, 3, 6, 7)
    compare(lambda x: sample(x, grid), image, atol=1e-4)
    compare(lambda g: sample(image.to(g), g), grid, atol=1e-4, rtol=1e-4)
    compare(sample, image.double(), grid.double())
    for dtype, atol in HALVES.items():
        compare(lambda x: sample(x, grid), image.to(dtype), atol=atol * 8, rtol=atol * 8)
    if mode != "bicubic":
        volume, points = torch.randn(2, 3, 4, 5, 6), torch.rand(2, 2, 3, 4, 3) * 2.6 - 1.3
        compare(sample, volume, points, atol=1e-4, rtol=1e-4)
    wild = torch.tensor([NAN, INF, -INF, 37.25, 0.0, 1.0]).view(1, 3, 1, 2).expand(2, 3, 1, 2)
    same(sample, image, wild, exact=False)
    torch.use_deterministic_algorithms(True)
    try:
        compare(sample, image, grid, atol=1e-4)
    finally:
        torch.use_deterministic_algorithms(False)


def test_permutations():
    computed_there("randperm")
    for n in (0, 1, 2, 5, 1000, 100000):
        for dtype in (torch.int64, torch.int32, torch.float32):
            p = torch.randperm(n, device="cuda", dtype=dtype)
            assert p.dtype == dtype and torch.equal(p.cpu().sort()[0], torch.arange(n).to(dtype))
    torch.manual_seed(3)
    first = torch.randperm(500, device="cuda").cpu()
    torch.manual_seed(3)
    assert torch.equal(first, torch.randperm(500, device="cuda").cpu())
    assert not torch.equal(first, torch.randperm(500, device="cuda").cpu())


def test_repeated_and_running():
    computed_there("repeat_interleave", "cummax", "cummin", "take", "put", "scatter_reduce")
    counts = torch.randint(0, 4, (50,))
    same(torch.repeat_interleave, counts)
    compare(lambda t: t.repeat_interleave(counts.to(t.device), dim=0), torch.randn(50, 3))
    same(lambda c: torch.repeat_interleave(c, output_size=int(counts.sum())), counts)
    for shape in ((1,), (9000,), (7, 300), (300, 7)):
        for dtype in (torch.float32, torch.int64, torch.float16):
            x = drawn(*shape, dtype=dtype)
            for dim in range(len(shape)):
                same(lambda t, d=dim: torch.cummax(t, d), x)
                same(lambda t, d=dim: torch.cummin(t, d), x)
    at = torch.tensor([[0, -1], [7, 3]])
    compare(lambda t: t.take(at.to(t.device)), torch.randn(4, 5))
    same(lambda t, i: t.put(i, torch.arange(4.0).to(t)), torch.randn(4, 5), at)
    same(lambda t, i: t.put(i, torch.arange(4.0).to(t), accumulate=True), torch.randn(4, 5), at)
    for reduce in ("sum", "mean", "prod", "amax", "amin"):
        for own in (False, True):
            compare(
                lambda t, s, r=reduce, o=own: t.scatter_reduce(
                    0, at[0].abs().to(t.device), s, r, include_self=o
                ),
                torch.randn(5),
                torch.randn(2),
            )


@pytest.mark.parametrize("p", [0, 1, 2, 2.5, INF])
def test_distances(p):
    computed_there("_cdist_forward")
    for a, b in (((3, 5), (4, 5)), ((2, 30, 5), (2, 40, 5)), ((3, 1), (4, 1))):
        compare(lambda x, y: torch.cdist(x, y, p), torch.randn(a), torch.randn(b), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode):
    computed_there("_embedding_bag", "_embedding_bag_gradients")
    indices, offsets = torch.randint(0, 30, (70,)), torch.tensor([0, 5, 5, 40, 69])

    def bag(table, **options):
        return F.embedding_bag(
            indices.to(table.device), table, offsets.to(table.device), mode=mode, **options
        )

    table = torch.randn(30, 11)
    compare(bag, table)
    compare(lambda t: bag(t, padding_idx=3), table)
    compare(lambda t: bag(t, scale_grad_by_freq=mode != "max"), table)
    compare(bag, table.double())
    if mode == "sum":
        compare(lambda t, w: bag(t, per_sample_weights=w), table, torch.randn(70))
    torch.use_deterministic_algorithms(True)
    try:
        compare(bag, table)
    finally:
        torch.use_deterministic_algorithms(False)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
