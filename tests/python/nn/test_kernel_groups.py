"""Kernels that take several lines, matrices, windows or bytes at once agree with PyTorch at every count."""

import pytest

import rushlight

torch = pytest.importorskip("torch")


def ours(tensor):
    return rushlight.from_numpy(tensor.numpy())


def theirs(tensor):
    return torch.from_numpy(tensor.numpy())


def same(result, expected, **tolerance):
    tolerance = tolerance or {"rtol": 0, "atol": 0}
    torch.testing.assert_close(theirs(result), expected, equal_nan=True, **tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
@pytest.mark.parametrize("lines", [1, 3, 4, 5, 8, 31])
@pytest.mark.parametrize("length", [1, 2, 4, 9, 130])
def test_scans_of_lines(dtype, lines, length):
    x = torch.randn(lines, length).mul(3).to(getattr(torch, dtype))
    exact = {"rtol": 1e-4, "atol": 1e-4} if "complex" in dtype else {}
    same(ours(x).cumsum(1), x.cumsum(1), **exact)
    x = x.real.clamp(-1, 1).to(x.dtype) if x.is_complex() else x
    same(ours(x).cumprod(-1), x.cumprod(-1), **exact)


@pytest.mark.parametrize("amounts", [(1, 2), (0, 3, 2, 0), (-1, 2, 1, -2), (2, 1, 0, 0, 1, 1), (0, 0, 3, 1)])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "complex128"])
def test_constant_pad(amounts, dtype):
    x = torch.randn(2, 3, 6, 5).mul(20).to(getattr(torch, dtype))
    for given, mine in [
        (x, ours(x)),
        (x.transpose(1, 3), ours(x).transpose(1, 3)),
        (x[:, :, ::2], ours(x)[:, :, ::2]),
        (x.flip(0, 2, 3), rushlight.from_numpy(x.numpy()[::-1, :, ::-1, ::-1])),
        (
            x.contiguous(memory_format=torch.channels_last),
            ours(x).contiguous(memory_format=rushlight.channels_last),
        ),
    ]:
        expected = torch.nn.functional.pad(given, amounts, value=7)
        result = rushlight.nn.functional.pad(mine, amounts, value=7)
        same(result, expected)
        assert result.stride() == expected.stride()


def test_constant_pad_that_crops_more_than_there_is():
    assert rushlight.nn.functional.pad(rushlight.ones(3), (-1, -2)).shape == (0,)
    with pytest.raises(RuntimeError, match="length must be non-negative"):
        rushlight.nn.functional.pad(rushlight.ones(3), (4, -5))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    "stride, padding, dilation, ceil", [(1, 0, 1, False), (2, 1, 1, True), (3, 1, 2, False)]
)
def test_maxima_without_indices(rank, stride, padding, dilation, ceil):
    x = torch.randn(2, 3, *[17, 13, 11][:rank])
    x.view(-1)[::29] = float("nan")
    pool, mine = (getattr(m.nn.functional, f"max_pool{rank}d") for m in (torch, rushlight))
    arguments = (3, stride, padding, dilation, ceil)
    expected = pool(x, *arguments)
    same(mine(ours(x), *arguments), expected)
    values, _ = mine(ours(x), *arguments, return_indices=True)
    same(values, expected)
    leaf = ours(x).requires_grad_()
    result = mine(leaf, *arguments)
    same(result.detach(), expected)
    result.sum().backward()
    twin = x.clone().requires_grad_()
    pool(twin, *arguments).sum().backward()
    same(leaf.grad, twin.grad)
    if rank > 1:
        last = getattr(rushlight, "channels_last" if rank == 2 else "channels_last_3d")
        same(mine(ours(x).contiguous(memory_format=last), *arguments), expected)


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int16", "float32"])
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_stacks_of_elements(dtype, count):
    pieces = [torch.randint(0, 2, (3, 77)).to(getattr(torch, dtype)) for _ in range(count)]
    same(rushlight.stack([ours(p) for p in pieces], -1), torch.stack(pieces, -1))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("n, limit", [(1, 3), (1003, 5), (50000, 100), (300, 100)])
def test_bincount(dtype, n, limit):
    x = torch.randint(0, limit, (n,)).to(getattr(torch, dtype))
    same(ours(x).bincount(), x.bincount())
    same(ours(x).bincount(minlength=150), x.bincount(minlength=150))


def test_bincount_refuses_negative_numbers_wherever_they_are():
    x = rushlight.ones(10000, dtype=rushlight.int64)
    x[7777] = -1
    with pytest.raises(RuntimeError, match="non-negative"):
        x.bincount()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 77, 20011])
def test_histc(dtype, n):
    x = torch.randn(n, dtype=getattr(torch, dtype))
    same(ours(x).histc(13), x.histc(13))
    same(ours(x).histc(40, -1, 2), x.histc(40, -1, 2))
    x[n // 2] = float("nan")
    with pytest.raises(RuntimeError, match="not finite"):
        ours(x).histc(5)


def test_take_wraps_and_checks():
    x = torch.randn(50)
    at = torch.randint(-50, 50, (4, 9))
    same(ours(x).take(ours(at)), x.take(at))
    same(ours(x).take(ours(at.abs() % 50)), x.take(at.abs() % 50))
    for wrong in (50, -51, 2**62):
        with pytest.raises(IndexError, match="out of range"):
            ours(x).take(rushlight.tensor([0, wrong]))


def test_unique_take_leaves_its_index():
    at = rushlight.tensor([-1, 2])
    rushlight.ones(5).take(at)
    assert at.tolist() == [-1, 2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 11, 16, 17])
@pytest.mark.parametrize("count", [3, 8, 40])
def test_many_small_matrices(dtype, n, count):
    linalg = rushlight.linalg
    a = torch.randn(count, n, n, dtype=torch.float64)
    x, b = a.to(getattr(torch, dtype)), torch.randn(count, n, 3, dtype=getattr(torch, dtype))
    close = {"rtol": 1e-2, "atol": 1e-2} if dtype == "float32" else {"rtol": 1e-8, "atol": 1e-8}
    unit = torch.eye(n, dtype=torch.float64).expand(count, n, n)
    torch.testing.assert_close(theirs(linalg.inv(ours(x))).double() @ x.double(), unit, **close)
    solved = theirs(linalg.solve(ours(x), ours(b))).double()
    torch.testing.assert_close(x.double() @ solved, b.double(), **close)
    same(linalg.det(ours(x)), torch.linalg.det(x), rtol=1e-3, atol=1e-5)
    factors, pivots = linalg.lu_factor(ours(x))
    expected, expected_pivots = torch.linalg.lu_factor(x)
    same(factors, expected, rtol=1e-2 if dtype == "float32" else 1e-8, atol=1e-4)
    same(pivots, expected_pivots)
    spd = (a @ a.mT + n * torch.eye(n, dtype=torch.float64)).to(x.dtype)
    for upper in (False, True):
        same(
            linalg.cholesky(ours(spd), upper=upper),
            torch.linalg.cholesky(spd, upper=upper),
            rtol=1e-4,
            atol=1e-4,
        )


def test_verdicts_on_small_matrices():
    x = torch.randn(20, 4, 4)
    x[3] = 0
    x[17] = 0
    _, info = rushlight.linalg.inv_ex(ours(x))
    assert info.tolist() == torch.linalg.inv_ex(x).info.tolist()
    with pytest.raises(RuntimeError, match=r"\(Batch element 3\)"):
        rushlight.linalg.inv(ours(x))
    spd = x @ x.mT + torch.eye(4)
    spd[5, 2, 2] = -1
    _, info = rushlight.linalg.cholesky_ex(ours(spd))
    assert info.tolist() == torch.linalg.cholesky_ex(spd).info.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize("length", [0, 1, 2, 15, 1000])
@pytest.mark.parametrize("right", [False, True])
def test_searches_of_many_values(dtype, length, right):
    kind = getattr(torch, dtype)
    boundaries = torch.randint(-50, 50, (length,)).sort().values.to(kind)
    for count in (1, 16, 37):
        values = torch.randint(-60, 60, (count,)).to(kind)
        expected = torch.searchsorted(boundaries.float(), values.float(), right=right)
        same(rushlight.searchsorted(ours(boundaries), ours(values), right=right), expected)
    lines, values = torch.randn(7, length).to(kind), torch.randn(7, 5).to(kind)
    ordered, order = lines.float().sort(-1)
    expected = torch.searchsorted(ordered, values.float(), right=right)
    same(rushlight.searchsorted(ours(lines), ours(values), right=right, sorter=ours(order)), expected)


def test_searches_in_disorder_end_where_pytorchs_do():
    boundaries, values = torch.randn(301), torch.randn(500)
    boundaries[::7] = values[::9] = float("nan")
    same(rushlight.searchsorted(ours(boundaries), ours(values)), torch.searchsorted(boundaries, values))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("shape, dim", [((3, 5), 1), ((70, 300), -1), ((2, 9000), 1), ((4, 6, 50), 1)])
def test_softmax_of_halves_rounds_once(dtype, shape, dim):
    kind, mine = getattr(torch, dtype), getattr(rushlight, dtype)
    x, grad = torch.randn(shape).to(kind), torch.randn(shape).to(kind)
    for name in ("softmax", "log_softmax"):
        leaf, leaf32 = (ours(x.float()).to(d).requires_grad_() for d in (mine, rushlight.float32))
        result, exact = getattr(leaf, name)(dim), getattr(leaf32, name)(dim)
        assert result.dtype == mine
        same(result.detach().float(), theirs(exact.detach().to(mine).float()))
        result.backward(ours(grad.float()).to(mine))
        assert leaf.grad.dtype == mine
        if name == "log_softmax":
            continue
        y = result.detach().float()
        g = ours(grad.float())
        close = {"rtol": 2e-2, "atol": 1e-3}
        same(leaf.grad.float(), theirs(y * (g - (g * y).sum(dim, keepdim=True))), **close)


@pytest.mark.parametrize("shape", [(0,), (3, 2, 0, 3), (5, 0), (0, 5), (8, 0, 8, 2)])
def test_reductions_of_nothing(shape):
    x = rushlight.empty(shape)
    assert x.sum().item() == 0
    assert x.prod().item() == 1
    assert (x == x).all().item() is True
    for dim in range(x.dim()):
        same(x.sum(dim), torch.empty(shape).sum(dim))
        same(x.prod(dim), torch.empty(shape).prod(dim))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64", "complex64"])
@pytest.mark.parametrize("shape", [(7, 3), (300, 4), (33, 17), (5, 70, 3), (2, 6, 9, 4)])
def test_reductions_of_short_lines_and_columns(dtype, shape):
    x = torch.randint(-3, 4, shape)
    mine = ours(x).to(getattr(rushlight, dtype))
    kind = torch.complex64 if dtype == "complex64" else torch.float32
    wide = rushlight.complex64 if dtype == "complex64" else rushlight.float32
    for dim in [*range(len(shape)), (0, len(shape) - 1)]:
        same(mine.sum(dim).to(wide), x.to(kind).sum(dim))
        if dtype != "complex64":
            same(mine.amax(dim).to(wide), x.to(kind).amax(dim))
            same(mine.amin(dim).to(wide), x.to(kind).amin(dim))
