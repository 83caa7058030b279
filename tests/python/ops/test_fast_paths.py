"""What is computed otherwise for speed gives what it gave: special functions on both sides of where their
forms meet, divisions by way of doubles, searches, windows in parts, kernels where composites would do.
"""

import numpy as np
import pytest

import rushlight as torch
from rushlight._command.names import is_aliased

# Computed with 40 digits; pairs of argument and value.
EXACT = {
    "i0": [(0.5, 1.06348337074132352), (7.9, 389.406283282157998), (8.1, 469.500606710121473)],
    "special.i0e": [(0.5, 0.645035270449150068), (7.9, 0.144369864141041921), (800.0, 0.014106945005869184)],
    "special.i1": [(-0.5, -0.257894305390896316), (7.9, 363.853944084508392), (8.1, 439.484308910358457)],
    "special.i1e": [
        (-0.5, -0.156420803184871697),
        (8.1, 0.133400688325836633),
        (800.0, 0.0140981254065269966),
    ],
    "erfinv": [
        (1e-9, 8.86226925452758069e-10),
        (0.3, 0.272462714726754345),
        (0.998, 2.18512421913300408),
        (0.999, 2.32675376551352449),
        (1 - 2.0**-53, 5.86358474875516793),
    ],
    "special.ndtri": [
        (1e-300, -37.0470962993611992),
        (1e-20, -9.26234008979840758),
        (1e-5, -4.26489079392282461),
        (0.3, -0.524400512708040816),
    ],
    "special.erfcx": [
        (-26.0, 7.65772493149056835e293),
        (-1.5, 18.6538862562627339),
        (0.7, 0.525930337349440958),
        (1e10, 5.64189583547756287e-11),
    ],
    "special.log_ndtr": [
        (-300.0, -45006.6227321186634),
        (-1.5, -2.70594440082388981),
        (-0.5, -1.17591176159361861),
        (3.0, -0.0013508099647481938),
    ],
    "lgamma": [
        (1e-300, 690.775527898213705),
        (0.3, 1.09579799481807556),
        (1.0001, -0.000057713342220471268),
        (1.9999, -0.000042275208772153458),
        (5.5, 3.95781396761871629),
        (7.99, 8.50501160608848111),
        (8.01, 8.54532442974773293),
        (-0.5, 1.2655121234846454),
        (-20.7, -43.105133189536224),
        (-1e-300, 690.775527898213705),
    ],
    "digamma": [
        (0.001, -1000.57557193181028),
        (3.3, 1.03482248905962169),
        (7.9, 2.00223848756357104),
        (8.1, 2.02886745708058143),
        (-0.3, 2.11330977963539887),
    ],
    "trigamma": [
        (0.001, 1000001.64253319583),
        (7.9, 0.134930783456634415),
        (8.1, 0.131390246576743732),
        (-0.3, 13.9451602678057225),
        (-7.7, 14.9576128448637265),
    ],
    "special.bessel_j0": [
        (3.0, -0.260051954901933438),
        (7.9, 0.19436184484127824),
        (8.1, 0.14751745404437767),
        (5e5, -0.000643278081786965666),
        (3e6, -0.000130531622490342365),
    ],
    "special.bessel_j1": [
        (3.0, 0.339058958525936459),
        (8.1, 0.247607766981592877),
        (-8.1, -0.247607766981592877),
        (3e6, -0.000441778344355231178),
    ],
    "special.bessel_y0": [
        (0.25, -0.931573024930058687),
        (7.9, 0.206520948144375769),
        (8.1, 0.238091328702234809),
        (3e6, -0.000441778322599954627),
    ],
    "special.bessel_y1": [
        (0.25, -2.70410522931528244),
        (7.9, -0.181721077280573128),
        (8.1, -0.133148795952495926),
        (3e6, 0.000130531548860623745),
    ],
}
EDGES = {
    "erfinv": ([1.0, -1.0, 1.5, np.nan, 0.0], [np.inf, -np.inf, np.nan, np.nan, 0.0]),
    "special.ndtri": ([0.0, 1.0, -0.1, np.nan], [-np.inf, np.inf, np.nan, np.nan]),
    "lgamma": (
        [0.0, -0.0, -3.0, 1.0, 2.0, np.inf, -np.inf, np.nan],
        [np.inf] * 3 + [0.0, 0.0, np.inf, np.inf, np.nan],
    ),
    "special.erfcx": ([np.inf, -np.inf, -27.0, np.nan], [0.0, np.inf, np.inf, np.nan]),
    "special.log_ndtr": ([np.inf, -np.inf, -1e10, np.nan], [-0.0, -np.inf, -5e19, np.nan]),
    "i0": ([np.inf, -np.inf, np.nan, 0.0], [np.inf, np.inf, np.nan, 1.0]),
    "special.i1e": ([np.inf, -np.inf, np.nan, -0.0], [0.0, -0.0, np.nan, 0.0]),
    "special.bessel_j0": ([0.0, np.inf, np.nan], [1.0, 0.0, np.nan]),
    "special.bessel_y0": ([0.0, -1.0, np.inf, np.nan], [-np.inf, np.nan, 0.0, np.nan]),
    "sin": ([-0.0, np.inf, np.nan], [-0.0, np.nan, np.nan]),
    "asin": ([-0.0, 1.0, -1.0, 1.5, np.nan], [-0.0, np.pi / 2, -np.pi / 2, np.nan, np.nan]),
}


def function(name):
    if name == "trigamma":
        return lambda x: torch.polygamma(1, x)
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", list(EXACT))
def test_values_of_special_functions(name):
    x, expected = (np.array(column * 7) for column in zip(*EXACT[name]))  # more than one vector, and a rest
    np.testing.assert_allclose(function(name)(torch.from_numpy(x)).numpy(), expected, rtol=5e-15)
    single = x[(np.abs(x) > 1e-30) & (np.abs(expected) < 1e30)].astype("float32")
    doubles = function(name)(torch.from_numpy(single.astype("float64"))).numpy()
    finite = np.isfinite(doubles)  # rounded to 1, an argument has no inverse
    got = function(name)(torch.from_numpy(single)).numpy()
    np.testing.assert_allclose(got[finite], doubles[finite], rtol=3e-7)


@pytest.mark.parametrize("name", list(EDGES))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_edges_of_special_functions(name, dtype):
    arguments, values = EDGES[name]
    got = function(name)(torch.from_numpy(np.array(arguments, dtype))).numpy()
    expected = np.array(values).astype(dtype)
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    np.testing.assert_array_equal(np.signbit(got[expected == 0]), np.signbit(expected[expected == 0]))


@pytest.mark.parametrize(
    "name, low, high", [("erfinv", -1, 1), ("special.bessel_j0", -12, 12), ("sin", -2e6, 2e6)]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_value_does_not_depend_on_its_neighbours(name, low, high, dtype):
    """Few elements of a block are gathered and computed again, many together."""
    x = np.random.default_rng(0).uniform(low, high, 3001).astype(dtype)
    whole = function(name)(torch.from_numpy(x)).numpy()
    alone = [function(name)(torch.from_numpy(x[i : i + 1])).item() for i in range(0, 3001, 7)]
    np.testing.assert_array_equal(whole[::7], np.array(alone, dtype))


def test_whole_numbers_divide_exactly_at_the_reach_of_doubles():
    rng = np.random.default_rng(1)
    near = 2**51 + rng.integers(-3, 4, 500)
    x = np.concatenate([near, -near, rng.integers(-9, 10, 500), rng.integers(-(2**62), 2**62, 500)])
    rng.shuffle(x)
    for y in (np.resize([7, -7, 1, -1, 3], x.size), np.resize(near[near != 0], x.size), -np.abs(x) // 5 - 1):
        a, b = torch.from_numpy(x), torch.from_numpy(np.ascontiguousarray(y))
        np.testing.assert_array_equal((a // b).numpy(), x // y)
        np.testing.assert_array_equal((a % b).numpy(), x % y)
        np.testing.assert_array_equal(torch.fmod(a, b).numpy(), np.fmod(x, y))
        cut = np.array(
            [int(p) // int(q) + (int(p) % int(q) != 0 and (p < 0) != (q < 0)) for p, q in zip(x, y)]
        )
        np.testing.assert_array_equal(torch.div(a, b, rounding_mode="trunc").numpy(), cut)
    for dtype in ("float32", "float64"):  # conversions go the same way
        np.testing.assert_array_equal(torch.from_numpy(x).to(getattr(torch, dtype)).numpy(), x.astype(dtype))


def test_quotients_of_halves_are_rounded_before_they_are_cut():
    x = torch.tensor([8.98, 2.998, -2.998, 0.9999, 65504.0, 300.0], dtype=torch.float16)
    y = torch.tensor([3.0, 1.0, 1.0, 1.0, 0.5, 0.01], dtype=torch.float16)
    np.testing.assert_array_equal(torch.div(x, y, rounding_mode="trunc").numpy(), np.trunc((x / y).numpy()))
    x, y = x.to(torch.bfloat16), y.to(torch.bfloat16)
    assert torch.equal(torch.div(x, y, rounding_mode="trunc"), torch.trunc(x / y))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int16"])
@pytest.mark.parametrize("right", [False, True])
def test_searches_of_lines_in_and_out_of_order(dtype, right):
    rng = np.random.default_rng(2)
    for n in (1, 2, 7, 64, 1000):
        line = np.sort(rng.integers(-50, 50, n)).astype(dtype)
        wanted = rng.integers(-60, 60, 301).astype(dtype)
        expected = np.searchsorted(line, wanted, side="right" if right else "left")
        got = torch.searchsorted(torch.from_numpy(line), torch.from_numpy(wanted), right=right)
        np.testing.assert_array_equal(got.numpy(), expected)
        np.testing.assert_array_equal(
            torch.bucketize(torch.from_numpy(wanted), torch.from_numpy(line), right=right).numpy(), expected
        )
    if dtype.startswith("float"):
        line, values = torch.tensor([0.0, 1.0, np.nan], dtype=getattr(torch, dtype)), torch.tensor([np.nan])
        assert torch.searchsorted(line[:2], values.to(line.dtype), right=right).item() == 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("length", [5, 9, 16, 17, 95, 200])
def test_sorts_of_lines_in_order(dtype, length):
    rising = np.arange(length, dtype=dtype)
    lines = [np.ones(length, dtype), rising, rising[::-1], rising // 3, rising[::-1] // 3]
    lines += [np.where(rising == length // 2, np.nan, rising)] if dtype.startswith("float") else []
    x = np.stack(lines).astype(dtype)
    for given in (torch.from_numpy(x), torch.from_numpy(np.asfortranarray(x))):
        values, indices = given.sort(dim=1, stable=True)
        np.testing.assert_array_equal(values.numpy(), np.sort(x, 1))
        np.testing.assert_array_equal(indices.numpy(), np.argsort(x, 1, kind="stable"))
        for descending in (False, True):
            values, indices = given.sort(dim=1, descending=descending)
            np.testing.assert_array_equal(np.take_along_axis(x, indices.numpy(), 1), values.numpy())
            expected = given.sort(dim=1, descending=descending, stable=True)[0].numpy()
            np.testing.assert_array_equal(values.numpy(), expected)
            np.testing.assert_array_equal(
                np.sort(indices.numpy(), 1), np.broadcast_to(np.arange(length), x.shape)
            )
    whole = torch.from_numpy(rising[::-1].copy())
    torch.sort(whole, out=(whole, torch.empty(length, dtype=torch.int64)))
    np.testing.assert_array_equal(whole.numpy(), rising)


@pytest.mark.parametrize("length", [9, 17, 64, 200])
def test_equal_elements_come_as_pytorch_leaves_them(length):
    oracle = pytest.importorskip("torch")
    if is_aliased():
        pytest.skip("PyTorch is not beside Rushlight")
    for x in (np.ones((2, length), "f4"), np.stack([np.arange(length) // 3, np.arange(length)[::-1] // 3])):
        for descending in (False, True):
            expected = oracle.from_numpy(x).sort(descending=descending)[1].numpy()
            np.testing.assert_array_equal(
                torch.from_numpy(x).sort(descending=descending)[1].numpy(), expected
            )


def test_sorts_of_few_digits_and_of_expanded_lines():
    rng = np.random.default_rng(3)
    for n in (17, 90, 150):
        x = rng.integers(-100, 100, (5, n))
        values, indices = torch.sort(torch.from_numpy(x), dim=1, stable=True)
        np.testing.assert_array_equal(indices.numpy(), np.argsort(x, 1, kind="stable"))
        np.testing.assert_array_equal(values.numpy(), np.sort(x, 1))
    line = torch.tensor([3, 1, 2]).expand(40, 3)
    values, indices = torch.sort(line, dim=0)
    assert torch.equal(values, line) and torch.equal(indices[:, 1], torch.arange(40))


@pytest.mark.parametrize("largest", [False, True])
def test_few_first_of_short_lines(largest):
    rng = np.random.default_rng(4)
    x = np.stack([rng.permutation(30) for _ in range(50)]).astype("float32")
    x[::5, 3] = np.nan
    for k in (1, 2, 5, 8, 9):
        values, indices = torch.topk(torch.from_numpy(x), k, largest=largest)
        order = np.argsort(np.where(np.isnan(x), np.inf, x) * (-1 if largest else 1), 1)[:, :k]
        np.testing.assert_array_equal(indices.numpy(), order)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("n", [1, 5, 16, 30, 31, 32, 33, 63, 64, 65, 100])
def test_softmax_of_any_length(n):
    x = np.random.default_rng(n).standard_normal((3, n)) * 4
    x[0, 0] = -np.inf
    if n > 1:
        for dtype, tolerance in ((torch.float32, 2e-6), (torch.float64, 1e-14)):
            t = torch.from_numpy(x).to(dtype).requires_grad_()
            e = np.exp(x - x.max(1, keepdims=True))
            np.testing.assert_allclose(
                torch.softmax(t, 1).detach().numpy(), e / e.sum(1, keepdims=True), tolerance
            )
            with np.errstate(divide="ignore"):
                expected = np.log(e / e.sum(1, keepdims=True))
            y = torch.log_softmax(t, 1)
            np.testing.assert_allclose(y.detach().numpy(), expected, tolerance, tolerance)
            (grad,) = torch.autograd.grad(y[:, 0].sum(), t)
            np.testing.assert_allclose(
                grad.numpy(), (np.arange(n) == 0) - e / e.sum(1, keepdims=True), tolerance, tolerance
            )
    assert torch.isnan(torch.softmax(torch.full((2, n), float("-inf")), 1)).all()


def test_kernels_give_what_the_composites_give():
    a, b = torch.randn(40, 3, 5), torch.randn(40, 3, 5)
    recorded = torch.linalg.cross(a.clone().requires_grad_(), b, dim=1)
    assert torch.equal(torch.linalg.cross(a, b, dim=1), recorded.detach())
    np.testing.assert_allclose(
        torch.linalg.cross(a[..., :3], b[..., :3]).numpy(),
        np.cross(a[..., :3].numpy(), b[..., :3].numpy()),
        1e-5,
        1e-6,
    )
    blocks = [torch.randn(2, 3), torch.arange(4), torch.tensor(5)]
    recorded = torch.block_diag(blocks[0].clone().requires_grad_(), *blocks[1:])
    assert torch.equal(torch.block_diag(*blocks), recorded.detach())
    pattern = (torch.rand(9, 8) < 0.4).float().to_sparse_csr()
    x, y = torch.randn(9, 37), torch.randn(37, 8)
    got = torch.sparse.sampled_addmm(pattern, x, y, beta=0.5, alpha=2.0).to_dense()
    mask = pattern.to_dense()
    np.testing.assert_allclose(got.numpy(), (mask * (2 * x @ y + 0.5)).numpy(), 1e-5, 1e-5)
    for layout in (torch.sparse_csr, torch.sparse_csc):
        assert torch.equal(pattern.to_sparse(layout=layout).to_sparse().to_dense(), mask)
    assert torch.equal(pattern.to_sparse().to_sparse_csr().crow_indices(), pattern.crow_indices())


def test_windows_in_parts():
    n = 40001
    t = np.arange(n) / n
    np.testing.assert_allclose(torch.hann_window(n).numpy(), 0.5 - 0.5 * np.cos(2 * np.pi * t), atol=1e-7)
    t = np.arange(n) / (n - 1)
    expected = np.i0(12 * np.sqrt(np.maximum(1 - (2 * t - 1) ** 2, 0))) / np.i0(12)
    got = torch.kaiser_window(n, periodic=False, dtype=torch.float64).numpy()
    np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 2, 5, 6, 4), (2, 3, 4, 4, 5)])
def test_volumes_of_few_channels(shape):
    """Float volumes of few channels are convolved by columns, as doubles are."""
    x = torch.randn(*shape, dtype=torch.float64)
    forward, back = (
        torch.randn(2, shape[1], 2, 2, 3, dtype=torch.float64),
        torch.randn(shape[1], 2, 2, 2, 3, dtype=torch.float64),
    )
    for f, w, arguments in (
        (torch.conv3d, forward, {"padding": 1, "stride": (1, 2, 1)}),
        (torch.conv_transpose3d, back, {"dilation": 2, "stride": (2, 1, 2), "padding": (1, 0, 1)}),
    ):
        singles = [t.float().requires_grad_() for t in (x, w)]
        doubles = [t.clone().requires_grad_() for t in (x, w)]
        y, z = f(*singles, **arguments), f(*doubles, **arguments)
        np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), 1e-4, 1e-5)
        g = torch.randn_like(z)
        for p, q in zip(torch.autograd.grad(y, singles, g.float()), torch.autograd.grad(z, doubles, g)):
            np.testing.assert_allclose(p.numpy(), q.numpy(), 1e-4, 1e-4)


def test_complex_halves_and_narrow_integers():
    x = np.random.default_rng(5).standard_normal(777) * 50
    for dtype in ("float32", "float64", "int32", "int64"):
        given = x.astype(dtype)
        got = torch.view_as_real(torch.from_numpy(given).chalf())
        np.testing.assert_array_equal(got[:, 0].numpy(), given.astype("float32").astype("float16"))
        assert not got[:, 1].any()
        for narrow in ("int8", "int16"):
            np.testing.assert_array_equal(
                torch.from_numpy(given).to(getattr(torch, narrow)).numpy(),
                given.astype("int64").astype(narrow),
            )
