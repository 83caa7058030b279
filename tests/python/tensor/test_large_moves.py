"""Orders, extremes, copies and gradients of losses at sizes that take their blocked paths, against NumPy."""

import numpy as np
import pytest

import rushlight as torch

F = torch.nn.functional


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def bits(tensor):
    return tensor.numpy().view(np.int32)


@pytest.mark.parametrize("descending", [False, True])
def test_sorted_values_keep_their_bits(descending, threads):
    x = np.random.default_rng(0).integers(-9, 9, 70000).astype(np.float32)
    x[::7] = -0.0
    x[::11] = np.nan
    x[5::11].view(np.int32)[:] = 0x7FC12345  # another NaN
    values, order = torch.from_numpy(x).sort(descending=descending, stable=True)
    np.testing.assert_array_equal(bits(values), x.view(np.int32)[order.numpy()])


def test_first_of_equal_zeros_stays(threads):
    x = np.repeat(np.random.default_rng(1).integers(-3, 3, 60000), 3).astype(np.float32)
    x[1::3] *= -1  # 5, -5, 5; and 0, -0, 0
    x[2::6] = -0.0
    starts = np.concatenate([[True], x[1:] != x[:-1]])
    np.testing.assert_array_equal(bits(torch.from_numpy(x).unique_consecutive()), x[starts].view(np.int32))
    whole = torch.from_numpy(x.astype(np.int64))
    np.testing.assert_array_equal(whole.unique().numpy(), np.unique(x))
    assert torch.unique_consecutive(torch.ones(100000)).tolist() == [1]


@pytest.mark.parametrize("special", [[], [np.inf], [np.inf, -np.inf], [np.nan], [np.nan, np.inf]])
def test_extremes_of_lines_with_special_numbers(special, threads):
    x = np.random.default_rng(2).standard_normal((9, 5000)).astype(np.float32)
    x[2, 1000 : 1000 + len(special)] = special
    x[4, 4999 - len(special) : 4999] = special
    for dims in ((), (1,)):
        np.testing.assert_array_equal(torch.from_numpy(x).amax(dims).numpy(), x.max(dims or None))
        np.testing.assert_array_equal(torch.from_numpy(x).amin(dims).numpy(), x.min(dims or None))


@pytest.mark.parametrize("length", [1, 15, 16, 17, 3001])
def test_running_extremes_of_lines(length):
    x = np.random.default_rng(3).integers(-5, 60, (40, length)).astype(np.float32)
    x[7, length // 2] = np.nan
    values, places = torch.from_numpy(x).cummax(1)
    expected = np.maximum.accumulate(x, 1)
    np.testing.assert_array_equal(values.numpy(), expected)
    np.testing.assert_array_equal(np.take_along_axis(x, places.numpy(), 1), expected)
    taken = (x == expected) | np.isnan(x)  # of equal elements, the last so far
    last = np.maximum.accumulate(np.where(taken, np.arange(length), 0), 1)
    np.testing.assert_array_equal(places.numpy(), last)


@pytest.mark.parametrize("width", [1, 3, 128, 511, 700, 3000])
def test_rows_that_lie_anywhere(width, threads):
    table = np.random.default_rng(4).standard_normal((300, width)).astype(np.float32)
    index = np.random.default_rng(5).integers(0, 300, 2000)
    rows, at = torch.from_numpy(table), torch.from_numpy(index)
    for taken in (rows[at], rows.index_select(0, at), F.embedding(at, rows)):
        np.testing.assert_array_equal(taken.numpy(), table[index])
    np.testing.assert_array_equal(rows[None][:, at].numpy(), table[None][:, index])
    target = torch.zeros(20, width + 1)
    target[:, 1:] = rows[0]  # from one line of the cache to another place in it
    assert (target[:, 1:] == rows[0]).all() and (target[:, 0] == 0).all()


@pytest.mark.parametrize("size", [3000, 40000])
def test_take_from_the_end(size, threads):
    x = np.random.default_rng(6).standard_normal(size).astype(np.float32)
    at = np.random.default_rng(7).integers(-size, size, 50000)
    np.testing.assert_array_equal(torch.from_numpy(x).take(torch.from_numpy(at)).numpy(), x[at])
    for outside in (size, -size - 1):
        at[40000] = outside
        with pytest.raises(IndexError, match="out of range"):
            torch.from_numpy(x).take(torch.from_numpy(at))


LOSSES = {
    "mse": F.mse_loss,
    "smooth_l1": lambda x, y, **options: F.smooth_l1_loss(x, y, beta=0.3, **options),
    "huber": lambda x, y, **options: F.huber_loss(x, y, delta=0.7, **options),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_large_losses_are_those_of_their_parts(name, dtype, threads):
    torch.manual_seed(0)
    x, y, g = (torch.randn(70001).to(dtype) for _ in range(3))
    x[:5] = torch.tensor([float("nan"), float("inf"), -0.0, 1e-30, 3e4])
    y[:5] = 0

    def gradient(part, **options):
        leaf = x[part].clone().requires_grad_()
        loss = LOSSES[name](leaf, y[part], **options)
        loss.backward(g[part] if loss.dim() else g[0])
        return leaf.grad

    parts = [slice(i, i + 7000) for i in range(0, 70001, 7000)]
    for reduction in ("none", "sum"):
        apart = torch.cat([gradient(part, reduction=reduction) for part in parts])
        torch.testing.assert_close(
            gradient(slice(None), reduction=reduction), apart, rtol=0, atol=0, equal_nan=True
        )
    leaf = x[5:].clone().requires_grad_()  # and gradients that are differentiated again
    (first,) = torch.autograd.grad(LOSSES[name](leaf, y[5:]), leaf, create_graph=True)
    assert first.requires_grad
    leaf.grad = None
    LOSSES[name](leaf, y[5:]).backward()
    torch.testing.assert_close(first.detach(), leaf.grad)


SCATTERED = {  # sizes of self and of src, the dimension, whether the index is expanded from one column
    "rows": ((300, 40), (3000, 40), 0, True),
    "wide rows": ((30, 1100), (80, 1100), 0, True),
    "each": ((300, 40), (3000, 40), 0, False),
    "slices": ((6, 50, 40), (6, 400, 37), 1, True),
    "lines": ((300, 400), (290, 300), 1, False),
    "outermost": ((50, 3, 40), (700, 3, 40), 0, False),
}


@pytest.mark.parametrize("case", SCATTERED)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32"])
def test_scatter_of_many(case, dtype, threads):
    pt = pytest.importorskip("torch")
    sizes, src_sizes, dim, expanded = SCATTERED[case]
    rng = np.random.default_rng(3)
    # Whole numbers and signs: sums and products of these are exact in any order.
    x, src = (rng.choice([-1, 1, 2, 1, -1, 1, -1], s).astype(np.float32) for s in (sizes, src_sizes))
    index_sizes = tuple(1 if expanded and d != dim else n for d, n in enumerate(src_sizes))
    index = rng.integers(0, sizes[dim], index_sizes)
    if dtype != "int32":
        src.flat[::997] = np.nan

    def results(lib):
        kind = getattr(lib, dtype)
        self, values = lib.tensor(x).to(kind), lib.tensor(src).to(kind)
        at = lib.tensor(index).expand(src_sizes)
        if dtype in ("float16", "bfloat16"):  # their products would round
            signs = values.sign()
            yield self.scatter_reduce(dim, at, signs, "prod")
        elif dtype != "int32":
            yield self.scatter_reduce(dim, at, values.sign() * 2, "prod")
        for reduce in ("amax", "amin", "mean", "sum"):
            if reduce == "mean" and dtype in ("float16", "bfloat16", "int32"):
                continue  # rounds at each step, or towards another side
            for include_self in (True, False):
                yield self.scatter_reduce(dim, at, values, reduce, include_self=include_self)
        yield self.scatter(dim, at, 3)

    for found, expected in zip(results(torch), results(pt)):
        np.testing.assert_array_equal(found.double().numpy(), expected.double().numpy())


@pytest.mark.parametrize(
    "select",
    [
        lambda x, i: x.topk(7).values,
        lambda x, i: x.sort().values,
        lambda x, i: x.max(1).values,
        lambda x, i: x.cummax(0).values,
        lambda x, i: x.gather(1, i),
        lambda x, i: x.index_select(0, i[0]),
        lambda x, i: x.take(i),
    ],
)
def test_gradients_of_what_is_selected_are_the_same_for_further_derivatives(select):
    torch.manual_seed(0)
    x = torch.randn(50, 40).requires_grad_()
    y = select(x, torch.randint(0, 40, (30, 20)))
    g = torch.randn_like(y)
    (plain,) = torch.autograd.grad(y, x, g, retain_graph=True)
    (recorded,) = torch.autograd.grad(y, x, g, create_graph=True)
    assert torch.equal(plain, recorded) and plain.count_nonzero() > 0


@pytest.mark.parametrize("lines", [1, 3, 4, 70])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 7, 8, 9, 1000, 100001])
def test_running_sums_and_products_of_lines(length, lines, threads):
    rng = np.random.default_rng(length)
    x = rng.standard_normal((lines, length)).astype(np.float32)
    for special, at in ((np.inf, 0.3), (-np.inf, 0.6), (np.nan, 0.9)):
        x[-1, int(at * length)] = special
    factors = np.exp(x / 100).astype(np.float32)
    with np.errstate(invalid="ignore"):
        sums, products = x.astype(np.float64).cumsum(1), factors.astype(np.float64).cumprod(1)
    np.testing.assert_allclose(torch.from_numpy(x).cumsum(1).numpy(), sums, rtol=2e-7, atol=1e-9)
    np.testing.assert_allclose(torch.from_numpy(factors).cumprod(1).numpy(), products, rtol=2e-7)
    whole = rng.integers(-9, 9, (lines, length))
    for dtype in ("float32", "float64", "int32"):
        y = torch.from_numpy(whole).to(getattr(torch, dtype))
        np.testing.assert_array_equal(y.cumsum(1).numpy(), whole.cumsum(1))
        np.testing.assert_array_equal(y.t().contiguous().cumsum(0).t().numpy(), whole.cumsum(1))
        np.testing.assert_array_equal(y.cumsum_(1).numpy(), whole.cumsum(1))
