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


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("size", [(5, 7), (4, 2), (3, 1), (2, 3, 4)])
def test_sampled_pixels_outside_count_nothing(size, padding, mode):
    if len(size) == 3 and mode == "bicubic":
        pytest.skip("of images alone")
    rng = np.random.default_rng(1)
    image = rng.normal(size=(2, 3, *size)).astype("float32")
    grid = rng.uniform(-1.6, 1.6, (2, *([9] * len(size)), len(size))).astype("float32")
    if padding == "zeros":
        image[..., 0], image[..., -1] = np.inf, np.nan  # that may meet no weight of a tap outside
    for aligned in (False, True):
        options = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
        want, got = (
            m.nn.functional.grid_sample(m.tensor(image), m.tensor(grid), **options).numpy()
            for m in (torch, rl)
        )
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "nansum"])
@pytest.mark.parametrize("shape", [(3, 5, 100), (64, 4, 1024), (15, 2, 3, 2000)])
def test_reductions_around_a_dimension(shape, name, dtype):
    x = rl.tensor(np.random.default_rng(2).normal(size=shape)).to(getattr(rl, dtype))
    dims = (0, -1)
    got = getattr(x, name)(dims)
    moved = x.movedim(0, -2).contiguous()  # whose rows follow each other
    expected = getattr(moved, name)((-2, -1))
    assert got.shape == expected.shape
    tolerance = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 1e-2}[dtype]
    np.testing.assert_allclose(got.double().numpy(), expected.double().numpy(), tolerance, tolerance)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_running_extremes_of_edges(dtype, name):
    rng = np.random.default_rng(3)
    for length in (1, 15, 16, 40):
        x = torch.tensor(rng.choice([-e for e in EDGES] + EDGES, (30, length))).to(getattr(torch, dtype))
        want, got = getattr(torch, name)(x, 1), getattr(rl, name)(ours(x), 1)
        np.testing.assert_array_equal(got[1].numpy(), want[1].numpy())
        number = ~torch.isnan(want[0]).numpy()
        np.testing.assert_array_equal(bits(got[0])[number], bits(want[0])[number])
        assert np.isnan(got[0].double().numpy()[~number]).all()


@pytest.mark.parametrize("name, options", [("sort", {}), ("topk", {"k": 3}), ("cummax", {}), ("median", {})])
def test_lines_of_expanded_tensors(name, options):
    x = torch.tensor(np.random.default_rng(4).integers(0, 9, (3, 1, 20))).float()
    for sizes, dim in (((3, 4, 20), 2), ((2, 3, 4, 20), 3), ((3, 4, 20), 0)):
        want = getattr(x.expand(sizes), name)(**options, dim=dim)
        got = getattr(ours(x).expand(sizes), name)(**options, dim=dim)
        for result, expected in zip(got, want, strict=True):
            np.testing.assert_array_equal(result.numpy(), expected.numpy())
            assert result.is_contiguous()


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "int64"])
@pytest.mark.parametrize("part", [lambda x: x[::2, ::2], lambda x: x.t(), lambda x: x[:1].expand(12, 20)])
def test_strided_elements_are_woven(part, dtype):
    x = rl.arange(240).reshape(12, 20).to(getattr(rl, dtype))
    numbers = part(x).double().numpy()
    for count in (2, 3, 5):
        np.testing.assert_array_equal(
            rl.stack([part(x)] * count, -1).double().numpy(), np.stack([numbers] * count, -1)
        )
    columns = rl.cat([part(x)[..., None], part(x + 1)[..., None]], -1)
    np.testing.assert_array_equal(
        columns.double().numpy(), np.stack([numbers, part(x + 1).double().numpy()], -1)
    )


@pytest.mark.parametrize("source", ["bool", "uint8", "int64"])
@pytest.mark.parametrize("target", ["complex32", "complex64", "complex128"])
def test_whole_numbers_become_complex(target, source):
    x = np.random.default_rng(5).integers(0, 2 if source == "bool" else 200, 1000)
    given = rl.tensor(x).to(getattr(rl, source))
    for part in (given, given[::3]):
        got = part.to(getattr(rl, target)).to(rl.complex128).numpy()
        np.testing.assert_array_equal(got, part.to(rl.float64).numpy().astype("complex128"))
    into = rl.zeros(1000, 2, dtype=getattr(rl, target))
    into[:, 1] = given
    np.testing.assert_array_equal(into[:, 1].to(rl.complex128).numpy().real, given.double().numpy())
    assert (into[:, 0] == 0).all()


@pytest.mark.parametrize("shape", [(7, 5), (3, 5, 33), (0, 5), (4, 5, 3, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_likelihood_of_counted_targets(dtype, shape):
    rng = np.random.default_rng(6)
    scores, targets = rng.normal(size=shape), rng.integers(0, 5, (shape[0], *shape[2:]))
    targets[rng.random(targets.shape) < 0.3] = 3
    scores[:, 0] = np.nan if shape[0] else 0
    targets[targets == 0] = 3  # the class whose scores are no numbers is read by none
    want, got = (
        m.nn.functional.nll_loss(
            m.tensor(scores).to(getattr(m, dtype)), m.tensor(targets), ignore_index=3, reduction="sum"
        )
        for m in (torch, rl)
    )
    np.testing.assert_allclose(
        got.double().numpy(), want.double().numpy(), 1e-2 if dtype == "bfloat16" else 1e-6
    )
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        rl.nn.functional.nll_loss(rl.zeros(2, 5), rl.tensor([1, 5]))


@pytest.mark.parametrize("count", [1, 2, 33, 64])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_steps_of_bfloat16_by_pairs(name, count):
    """Each number is what the same step makes of floats, rounded. Where that lies just between two numbers,
    the float's last bit would decide, which the order of operations moves."""
    rl.manual_seed(0)
    start, slopes = rl.randn(count, dtype=rl.bfloat16), rl.randn(count, dtype=rl.bfloat16)
    options = {"lr": 0.1, **({"momentum": 0.9} if name == "SGD" else {"weight_decay": 0.1})}
    results = []
    for dtype in (rl.bfloat16, rl.float32):
        p = start.clone().to(dtype).detach().requires_grad_()
        p.grad = slopes.to(dtype)
        getattr(rl.optim, name)([p], **options, fused=True).step()
        results.append(p.detach().to(rl.bfloat16).float().numpy())
    np.testing.assert_array_equal(*results)
