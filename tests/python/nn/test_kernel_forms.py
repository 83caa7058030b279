"""Kernels with several forms by dtype, layout and size agree with PyTorch in all of them."""

import pytest

import rushlight

torch = pytest.importorskip("torch")

INTEGERS = ["int8", "uint8", "int16", "int32", "int64"]
HALVES = ["float16", "bfloat16"]


def pair(tensor):
    """The tensor, and the same of ours."""
    if tensor.dtype == torch.bfloat16:
        return tensor, rushlight.from_numpy(tensor.view(torch.int16).numpy()).view(rushlight.bfloat16)
    return tensor, rushlight.from_numpy(tensor.numpy())


def same(ours, theirs):
    theirs = theirs.float() if theirs.dtype == torch.bfloat16 else theirs
    ours = ours.float() if ours.dtype == rushlight.bfloat16 else ours
    torch.testing.assert_close(torch.from_numpy(ours.numpy()), theirs, rtol=0, atol=0, equal_nan=True)


def integers(dtype, *shape):
    low = 0 if dtype == "uint8" else -100
    return torch.randint(low, 100, shape, dtype=getattr(torch, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    "m, k, n", [(1, 5, 7), (4, 9, 8), (37, 21, 45), (6, 64, 130), (50, 3, 1), (9, 70, 1)]
)
def test_integer_products_wrap_around(dtype, m, k, n):
    a, b = pair(integers(dtype, m, k)), pair(integers(dtype, k, n))
    same(a[1] @ b[1], a[0] @ b[0])
    same(b[1].t() @ a[1].t(), b[0].t() @ a[0].t())
    same(a[1] @ b[1][:, 0], a[0] @ b[0][:, 0])
    c = pair(integers(dtype, m, n))
    same(
        rushlight.addmm(c[1], a[1], b[1], beta=3, alpha=-2 if dtype != "uint8" else 2),
        torch.addmm(c[0], a[0], b[0], beta=3, alpha=-2 if dtype != "uint8" else 2),
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division(dtype):
    a, b = integers(dtype, 1000), integers(dtype, 1000)
    info = torch.iinfo(a.dtype)
    a[:4] = torch.tensor([info.min, info.max, info.min, info.max], dtype=a.dtype)
    b[b == 0] = 1
    if info.min < 0:  # PyTorch fails on the least number over -1, so only the others are compared
        b[:4] = torch.tensor([1, -1, 7, -7], dtype=a.dtype)
    x, y = pair(a), pair(b)
    for name in ("floor_divide", "remainder", "fmod"):
        same(getattr(rushlight, name)(x[1], y[1]), getattr(torch, name)(a, b))
    same(
        rushlight.div(x[1], y[1], rounding_mode="trunc"),
        torch.div(a, b, rounding_mode="trunc"),
    )


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shape", [(3,), (5, 31), (40, 129), (2, 3, 700)])
def test_halves(dtype, shape):
    values = torch.randn(shape).to(getattr(torch, dtype))
    values.view(-1)[:3] = torch.tensor([float("inf"), float("nan"), 6e-8]).to(values.dtype)
    x, y = pair(values), pair(values.flip(-1).contiguous())
    for name in ("add", "mul", "maximum", "lt", "eq", "copysign", "fmax", "nextafter"):
        same(getattr(rushlight, name)(x[1], y[1]), getattr(torch, name)(x[0], y[0]))
    for name in ("abs", "neg", "floor", "relu", "nan_to_num", "isnan", "sign"):
        same(getattr(rushlight, name)(x[1]), getattr(torch, name)(x[0]))
    same(x[1] * y[1][..., :1], x[0] * y[0][..., :1])
    same(y[1][..., :1] - x[1], y[0][..., :1] - x[0])
    same(x[1][..., ::2] + y[1][..., ::2], x[0][..., ::2] + y[0][..., ::2])
    same(x[1].amax(-1), x[0].amax(-1))
    same(
        x[1].float().t() if x[1].dim() == 2 else x[1].float(),
        x[0].float().t() if x[0].dim() == 2 else x[0].float(),
    )


@pytest.mark.parametrize("value", range(0, 65536, 257))
def test_every_half_survives(value):
    bits = torch.arange(value, min(value + 257, 65536)).to(torch.uint16).view(torch.int16)
    halves = bits.view(torch.float16)
    x = rushlight.from_numpy(halves.numpy())
    same(x.float(), halves.float())
    same(x.float().to(rushlight.float16), halves.float().to(torch.float16))
    between = torch.nextafter(halves.float(), torch.tensor(float("inf"))) * (1 + 2.0**-12)
    same(rushlight.from_numpy(between.numpy()).to(rushlight.float16), between.to(torch.float16))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
@pytest.mark.parametrize("n, k", [(64, 1), (130, 2), (700, 10), (1000, 3), (5000, 20)])
def test_topk_of_lines_with_equal_elements(dtype, n, k):
    x, y = pair(torch.randint(-9, 9, (6, n)).to(getattr(torch, dtype)))
    for largest in (True, False):
        ours, theirs = y.topk(k, largest=largest), x.topk(k, largest=largest)
        same(ours.values, theirs.values)
        same(ours.indices, theirs.indices)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64", "uint8", "bool"])
def test_unique(dtype):
    x = torch.randint(0, 40, (3, 500)).to(getattr(torch, dtype))
    if x.is_floating_point():
        x[0, 0] = float("nan")
    a, b = pair(x)
    for name in ("unique", "unique_consecutive"):
        for flags in ({}, {"return_inverse": True}, {"return_counts": True}):
            ours, theirs = getattr(rushlight, name)(b, **flags), getattr(torch, name)(a, **flags)
            for o, t in zip(ours if flags else [ours], theirs if flags else [theirs], strict=True):
                same(o, t)


@pytest.mark.parametrize("item", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("width", [3, 16, 1021, 4097])
def test_moves_of_rows(item, width):
    a, b = pair(torch.randint(0, 200, (7, width)).to(getattr(torch, item)))
    for move in (
        lambda x: x.roll(3, 1),
        lambda x: x.roll(-5),
        lambda x: x.flip(1),
        lambda x: x.repeat(1, 3),
        lambda x: x.repeat_interleave(2, 0),
        lambda x: x[:, 1:].clone(),
        lambda x: x.unfold(1, 2, 1).contiguous(),
        lambda x: x.t().contiguous(),
    ):
        same(move(b), move(a))
    for count in (2, 3, 4, 9):
        same(rushlight.stack([b, b + 1] * count, -1), torch.stack([a, a + 1] * count, -1))
        same(rushlight.cat([b, b[:, :2]] * count, 1), torch.cat([a, a[:, :2]] * count, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 5, 8, 9, 65, 130, 200])
def test_factors(dtype, n):
    torch.manual_seed(n)
    x = torch.randn(3, n, n, dtype=getattr(torch, dtype))
    a, b = pair(x @ x.mH + n * torch.eye(n, dtype=x.dtype))
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-10

    def close(ours, theirs):
        torch.testing.assert_close(torch.from_numpy(ours.numpy()), theirs, rtol=tolerance, atol=tolerance)

    for upper in (False, True):
        close(rushlight.linalg.cholesky(b, upper=upper), torch.linalg.cholesky(a, upper=upper))
    close(rushlight.linalg.inv(b), torch.linalg.inv(a))
    close(rushlight.linalg.solve(b, b[..., :2]), torch.linalg.solve(a, a[..., :2]))
    lu, theirs = rushlight.linalg.lu_factor(pair(x)[1]), torch.linalg.lu_factor(x)
    same(lu.pivots, theirs.pivots)
    broken = a.clone()
    broken[1, n // 2, n // 2] = -1e6
    assert (
        rushlight.linalg.cholesky_ex(pair(broken)[1]).info.tolist()
        == torch.linalg.cholesky_ex(broken).info.tolist()
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("shape, dim", [((40, 3), 1), ((5, 6, 7), 1), ((9, 200), 0), ((300,), 0)])
def test_running_extremes(dtype, shape, dim):
    x = torch.randint(-5, 5, shape).to(getattr(torch, dtype))
    if x.is_floating_point():
        x.view(-1)[x.numel() // 2] = float("nan")
    a, b = pair(x)
    for name in ("cummax", "cummin"):
        ours, theirs = getattr(rushlight, name)(b, dim), getattr(torch, name)(a, dim)
        same(ours.values, theirs.values)
        same(ours.indices, theirs.indices)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("options", [(2,), (3, 2, 1), (3, 1, 1), (2, 3), (5, 4, 2), (3, 2, 0, 2)])
def test_pools_of_planes(dtype, options):
    x = torch.randint(-9, 9, (2, 3, 17, 38)).to(getattr(torch, dtype))
    a, b = pair(x)
    functions, theirs = rushlight.nn.functional, torch.nn.functional
    ours, expected = (
        f.max_pool2d(v, *options, return_indices=True) for f, v in ((functions, b), (theirs, a))
    )
    for o, t in zip(ours, expected, strict=True):
        same(o, t)
    if len(options) < 4:
        ours, expected = functions.avg_pool2d(b, *options), theirs.avg_pool2d(a, *options)
        torch.testing.assert_close(torch.tensor(ours.tolist()), expected.float(), rtol=1e-2, atol=1e-2)
    for size in (1, 5, (17, 19)):
        ours, expected = functions.adaptive_avg_pool2d(b, size), theirs.adaptive_avg_pool2d(a, size)
        torch.testing.assert_close(torch.tensor(ours.tolist()), expected.float(), rtol=1e-2, atol=1e-2)
