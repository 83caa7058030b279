"""Kernels that take another way for common shapes, against PyTorch at the edges of those ways."""

import numpy as np
import pytest

import rushlight as rl

torch = pytest.importorskip("torch")

EDGES = [0.0, 1.0, 65504.0, float("inf"), float("nan"), 2.0**-24, 2.0**-14, 2.0**-14 - 2.0**-24, 3e38, 1e-40]
WORDS = {2: "int16", 4: "int32", 8: "int64"}


def bits(t):
    return t.view(getattr(torch if isinstance(t, torch.Tensor) else rl, WORDS[t.element_size()])).numpy()


def ours(t):
    return rl.from_numpy(t.view(getattr(torch, WORDS[t.element_size()])).numpy()).view(
        getattr(rl, str(t.dtype)[6:])
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nextafter_steps_by_the_spacing_of_its_dtype(dtype):
    edges = torch.tensor(EDGES + [-e for e in EDGES], dtype=torch.float64).to(getattr(torch, dtype))
    x, y = (t.reshape(-1) for t in torch.meshgrid(edges, edges, indexing="ij"))
    want, got = torch.nextafter(x, y), rl.nextafter(ours(x), ours(y))
    number = ~torch.isnan(want).numpy()
    np.testing.assert_array_equal(bits(got)[number], bits(want)[number])
    assert np.isnan(got.double().numpy()[~number]).all()


@pytest.mark.parametrize("name", ["lgamma", "erfinv"])
def test_guessed_functions_do_not_depend_on_their_neighbours(name):
    numbers = np.concatenate([np.linspace(-9.5, 60, 997), np.linspace(-1, 1, 997), [np.nan, np.inf, -np.inf]])
    x = rl.tensor(numbers, dtype=rl.float32)
    function = getattr(rl, name)
    one_by_one = np.array([function(v).item() for v in x])
    np.testing.assert_array_equal(function(x).numpy(), one_by_one.astype(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 31, 1000, 70001])
@pytest.mark.parametrize("special", [None, float("nan"), float("inf"), float("-inf")])
def test_extremes_see_nan_and_infinities(dtype, n, special):
    x = torch.randn(3, n).to(getattr(torch, dtype))
    if special is not None:
        x[1, n // 2] = special
    for name in ("amax", "amin"):
        want = getattr(torch, name)(x, 1).numpy()
        np.testing.assert_array_equal(getattr(rl, name)(rl.from_numpy(x.numpy()), 1).numpy(), want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8"])
@pytest.mark.parametrize("n, k", [(129, 2), (700, 10), (2048, 4)])
def test_topk_of_long_lines_with_ties_and_nan(dtype, n, k):
    x = (20 * torch.randn(4, n)).to(getattr(torch, dtype))
    if x.is_floating_point():
        x[1, 5] = float("nan")
        x[2] = torch.round(x[2] / 8)
        x[3] = float("nan")
    for largest in (True, False):
        want = torch.topk(x.float() if dtype == "bfloat16" else x, k, largest=largest)
        mine = (
            rl.from_numpy(x.float().numpy()).bfloat16() if dtype == "bfloat16" else rl.from_numpy(x.numpy())
        )
        values, indices = rl.topk(mine, k, largest=largest)
        np.testing.assert_array_equal(values.float().numpy(), want.values.float().numpy())
        np.testing.assert_array_equal(indices.numpy(), want.indices.numpy())


@pytest.mark.parametrize("shape", [(16, 16), (17, 33), (130, 257), (1000, 3), (5, 2000)])
def test_bytes_transposed(shape):
    x = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(rl.from_numpy(x).t().contiguous().numpy(), x.T)


@pytest.mark.parametrize("groups", [2, 5, 250])
@pytest.mark.parametrize("n", [0, 1, 2, 1000, 65537])
def test_distinct_values_without_their_places(n, groups):
    x = np.random.default_rng(0).integers(0, groups, n)
    kept = np.concatenate([x[:1], x[1:][x[1:] != x[:-1]]])
    np.testing.assert_array_equal(rl.unique_consecutive(rl.from_numpy(x)).numpy(), kept)
    np.testing.assert_array_equal(rl.unique(rl.from_numpy(x)).numpy(), np.unique(x))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape, out", [((4, 32, 8, 8), 16), ((2, 256, 14, 14), 64), ((3, 64, 9, 13), 128)])
def test_filters_of_one_pixel_read_planes(shape, out, bias):
    theirs = torch.nn.Conv2d(shape[1], out, 1, bias=bias)
    mine = rl.nn.Conv2d(shape[1], out, 1, bias=bias)
    mine.load_state_dict({name: rl.from_numpy(p.detach().numpy()) for name, p in theirs.named_parameters()})
    x, grad = torch.randn(shape, requires_grad=True), torch.randn(shape[0], out, *shape[2:])
    y = theirs(x)
    y.backward(grad)
    x_mine = rl.from_numpy(x.detach().numpy()).requires_grad_()
    y_mine = mine(x_mine)
    y_mine.backward(rl.from_numpy(grad.numpy()))
    pairs = [(y, y_mine), (x.grad, x_mine.grad)]
    pairs += [(p.grad, q.grad) for p, q in zip(theirs.parameters(), mine.parameters(), strict=True)]
    for want, got in pairs:
        want = want.detach().numpy()
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=0, atol=1e-5 * np.abs(want).max())
