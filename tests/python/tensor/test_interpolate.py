"""rushlight.interpolate against NumPy and SciPy, and its gradients against finite differences."""

import numpy as np
import pytest

import rushlight as rl
from rushlight import interpolate

RNG = np.random.default_rng(5)
KNOTS = np.array([-1.0, -0.2, 0.1, 0.9, 1.0, 2.5, 3.1])
DATA = RNG.standard_normal((7, 2))
AT = np.array([[-1.0, -0.7, 0.1, 0.5], [1.0, 2.2, 3.0, 3.1]])
BEYOND = np.array([-2.0, -1.0, 0.3, 3.1, 4.5, np.nan])
T = rl.from_numpy


def agree(mine, expected, atol=1e-12):
    np.testing.assert_allclose(mine.numpy(), expected, rtol=1e-10, atol=atol)


@pytest.mark.parametrize("kwargs", [{}, {"left": -5.0}, {"left": 1.0, "right": 2.0}, {"period": 1.7}])
def test_interp(kwargs):
    y = DATA[:, 0].copy()
    for x in (AT, BEYOND, np.array(0.4), KNOTS):
        agree(interpolate.interp(T(x), T(KNOTS), T(y), **kwargs), np.interp(x, KNOTS, y, **kwargs))
    steps, level = np.array([0.0, 1, 1, 2]), np.array([0.0, 1, 5, 6])
    agree(interpolate.interp(T(KNOTS), T(steps), T(level)), np.interp(KNOTS, steps, level))
    z = y + 1j * DATA[:, 1]
    agree(interpolate.interp(T(BEYOND[:5].copy()), T(KNOTS), T(z)), np.interp(BEYOND[:5], KNOTS, z))
    one, value, finite = KNOTS[:1].copy(), y[:1].copy(), BEYOND[:5].copy()
    agree(interpolate.interp(T(finite), T(one), T(value), **kwargs), np.interp(finite, one, value, **kwargs))


def test_interp_of_lists_and_integers():
    y = interpolate.interp(rl.tensor([1, 3]), [0, 2, 4], [0, 1, 5])
    assert y.dtype == rl.float32 and y.tolist() == [0.5, 3.0]


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right):
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.5, 3.0, np.inf])
    for bins in (np.array([0.0, 1.0, 2.5]), np.array([2.5, 1.0, 0.0]), np.array([1.0, 1.0]), np.array([])):
        found = interpolate.digitize(T(x), T(bins), right)
        assert found.tolist() == np.digitize(x, bins, right).tolist()
    assert interpolate.digitize(rl.tensor([1, 7]), [2, 4]).tolist() == [0, 2]


CONDITIONS = ["not-a-knot", "natural", "clamped", ((1, 0.5), (2, -1.0)), ("natural", (1, 2.0))]


@pytest.mark.parametrize("points", [2, 3, 4, 7])
@pytest.mark.parametrize("bc", CONDITIONS, ids=str)
def test_cubic_spline(points, bc):
    scipy = pytest.importorskip("scipy.interpolate")
    x, y = KNOTS[:points].copy(), DATA[:points].copy()
    given = bc
    if not isinstance(bc, str):  # SciPy wants values in y's shape
        given = tuple(b if isinstance(b, str) else (b[0], np.full(2, b[1])) for b in bc)
    mine, theirs = interpolate.CubicSpline(T(x), T(y), bc_type=bc), scipy.CubicSpline(x, y, bc_type=given)
    for nu in (0, 1, 2, 3):
        agree(mine(T(BEYOND), nu), theirs(BEYOND, nu), atol=1e-9)
    agree(mine.integrate(-0.8, 2.7), theirs.integrate(-0.8, 2.7), atol=1e-9)
    agree(mine(T(BEYOND), extrapolate=False), theirs(BEYOND, extrapolate=False), atol=1e-9)
    agree(mine.antiderivative(2)(T(AT)), theirs.antiderivative(2)(AT), atol=1e-9)


def test_periodic_spline_and_other_axes():
    scipy = pytest.importorskip("scipy.interpolate")
    for points in (3, 4, 7):
        x, y = KNOTS[:points].copy(), DATA[:points].copy()
        y[-1] = y[0]
        mine = interpolate.CubicSpline(T(x), T(y), bc_type="periodic")
        theirs = scipy.CubicSpline(x, y, bc_type="periodic")
        agree(mine(T(BEYOND[:5].copy())), theirs(BEYOND[:5]), atol=1e-9)
        agree(mine(T(AT), 2), theirs(AT, 2), atol=1e-8)
    y = RNG.standard_normal((3, 7, 2))
    for kind in ("CubicSpline", "PchipInterpolator", "Akima1DInterpolator"):
        mine = getattr(interpolate, kind)(T(KNOTS), T(y), axis=1)(T(AT))
        expected = getattr(scipy, kind)(KNOTS, y, axis=1)(AT)
        assert mine.shape == expected.shape == (3, 2, 4, 2)
        agree(mine, expected, atol=1e-10)


def test_long_splines_keep_their_digits():
    scipy = pytest.importorskip("scipy.interpolate")
    x = np.cumsum(RNG.uniform(0.01, 1.0, 3000))
    y, at = RNG.standard_normal(3000), RNG.uniform(x[0], x[-1], 100)
    for bc in ("not-a-knot", "natural"):
        expected = scipy.CubicSpline(x, y, bc_type=bc)(at)
        agree(
            interpolate.CubicSpline(T(x), T(y), bc_type=bc)(T(at)), expected, atol=1e-8 * abs(expected).max()
        )


@pytest.mark.parametrize("points", [2, 3, 7])
def test_local_cubics(points):
    scipy = pytest.importorskip("scipy.interpolate")
    x, y = KNOTS[:points].copy(), DATA[:points].copy()
    flat = np.array([0.0, 0, 1, 2, 2, 2, 1])[:points]
    for values in (y, flat):
        mine, theirs = interpolate.PchipInterpolator(T(x), T(values)), scipy.PchipInterpolator(x, values)
        agree(mine(T(BEYOND)), theirs(BEYOND))
        for method in ("akima", "makima"):
            mine = interpolate.Akima1DInterpolator(T(x), T(values), method=method)
            theirs = scipy.Akima1DInterpolator(x, values, method=method)
            agree(mine(T(BEYOND)), theirs(BEYOND))
    slopes = RNG.standard_normal((points, 2))
    mine = interpolate.CubicHermiteSpline(T(x), T(y), T(slopes))
    agree(mine(T(AT), 1), scipy.CubicHermiteSpline(x, y, slopes)(AT, 1), atol=1e-10)


GRID = (np.array([0.0, 1, 2.5, 4, 5]), np.array([3.0, 1, 0.5, -1, -2]), np.linspace(0, 1, 4))


@pytest.mark.parametrize("method", ["linear", "nearest", "cubic", "pchip"])
@pytest.mark.parametrize("fill", [float("nan"), None, -7.0])
def test_regular_grid(method, fill):
    scipy = pytest.importorskip("scipy.interpolate")
    values = RNG.standard_normal((5, 5, 4, 2))
    xi = np.stack([RNG.uniform(-1, 6, (6, 2)), RNG.uniform(-2, 3, (6, 2)), RNG.uniform(0, 1, (6, 2))], -1)
    options = {"method": method, "bounds_error": False, "fill_value": fill}
    # SciPy's "cubic" solves by iteration, to five digits or so; the older form is exact.
    exact = {**options, "method": "cubic_legacy"} if method == "cubic" else options
    theirs = scipy.RegularGridInterpolator(GRID, values, **exact)(xi)
    mine = interpolate.RegularGridInterpolator([T(g) for g in GRID], T(values), **options)(T(xi))
    agree(mine, theirs, atol=1e-8)
    parts = tuple(T(xi[..., k].copy()) for k in range(3))
    agree(interpolate.interpn(GRID, T(values), parts, **options), theirs, atol=1e-8)


def test_gradients():
    x, y = T(KNOTS).requires_grad_(), T(DATA).requires_grad_()
    at = T(np.array([-0.8, 0.3, 1.7, 2.9])).requires_grad_()
    line = T(DATA[:, 0].copy()).requires_grad_()
    check, twice = rl.autograd.gradcheck, rl.autograd.gradgradcheck
    assert check(interpolate.interp, (at, x, line)) and twice(interpolate.interp, (at, x, line))
    assert check(lambda a, k, v: interpolate.interp(a, k, v, period=1.37), (at, x, line))
    for kind in ("CubicSpline", "PchipInterpolator", "Akima1DInterpolator"):
        function = lambda a, k, v, kind=kind: getattr(interpolate, kind)(k, v)(a)
        assert check(function, (at, x, y)), kind
    assert twice(lambda a, v: interpolate.CubicSpline(x.detach(), v, bc_type="natural")(a), (at, y))
    values = T(RNG.standard_normal((5, 5, 4))).requires_grad_()
    xi = T(np.array([[0.3, 2.0, 0.5], [4.2, -1.5, 0.9]])).requires_grad_()
    for method in ("linear", "cubic", "pchip"):
        assert check(lambda v, p, m=method: interpolate.interpn(GRID, v, p, m), (values, xi)), method


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: interpolate.interp(rl.ones(2), rl.ones(3), rl.ones(2)), "vectors of one length"),
        (lambda: interpolate.interp(rl.ones(2), [], []), "array of sample points is empty"),
        (lambda: interpolate.interp(rl.ones(2), [0.0], [0.0], period=0), "period must be a non-zero"),
        (lambda: interpolate.digitize(rl.ones(2), [0, 2, 1]), "monotonically increasing or decreasing"),
        (lambda: interpolate.CubicSpline([0.0, 0.0], [1.0, 2.0]), "strictly increasing"),
        (lambda: interpolate.CubicSpline([0.0, 1.0], [1.0, 2.0, 3.0]), "doesn't match the length of x"),
        (lambda: interpolate.CubicSpline([0.0, 1.0], [1.0, 2.0], bc_type="loose"), "bc_type='loose'"),
        (lambda: interpolate.CubicSpline([0.0, 1.0], [1.0, 2.0], bc_type="periodic"), "first and last y"),
        (lambda: interpolate.PchipInterpolator([0.0], [1.0]), "at least 2 points"),
        (
            lambda: interpolate.interpn([[0.0, 1]], rl.ones(2), rl.tensor([[2.0]])),
            "out of bounds in dimension 0",
        ),
        (lambda: interpolate.interpn([[0.0, 1]], rl.ones(3), rl.tensor([[0.0]])), "values along dimension 0"),
        (lambda: interpolate.interpn([[0.0, 1]], rl.ones(2), rl.ones(1, 3)), "have dimension 3"),
        (lambda: interpolate.interpn([[0.0, 1]], rl.ones(2), rl.ones(1, 1), "cubic"), "at least 4 points"),
        (lambda: interpolate.interpn([[0.0, 1]], rl.ones(2), rl.ones(1, 1), "spline"), "is not defined"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
