"""Bessel and Airy functions and orthogonal polynomials against mpmath and PyTorch."""

import functools

import pytest

import rushlight as torch

mpmath = pytest.importorskip("mpmath")

S = torch.special
POINTS = [1e-8, 0.1, 0.5, 1.0, 1.999, 2.001, 3.3, 4.6, 7.0, 12.5, 30.0, 90.0]
FUNCTIONS = {
    "bessel_j0": lambda x: mpmath.besselj(0, x),
    "bessel_j1": lambda x: mpmath.besselj(1, x),
    "bessel_y0": lambda x: mpmath.bessely(0, x),
    "bessel_y1": lambda x: mpmath.bessely(1, x),
    "modified_bessel_i0": lambda x: mpmath.besseli(0, x),
    "modified_bessel_i1": lambda x: mpmath.besseli(1, x),
    "modified_bessel_k0": lambda x: mpmath.besselk(0, x),
    "modified_bessel_k1": lambda x: mpmath.besselk(1, x),
    "scaled_modified_bessel_k0": lambda x: mpmath.exp(x) * mpmath.besselk(0, x),
    "scaled_modified_bessel_k1": lambda x: mpmath.exp(x) * mpmath.besselk(1, x),
    "spherical_bessel_j0": lambda x: mpmath.sin(x) / x,
    "airy_ai": mpmath.airyai,
}
POLYNOMIALS = {
    "chebyshev_polynomial_t": mpmath.chebyt,
    "chebyshev_polynomial_u": mpmath.chebyu,
    "hermite_polynomial_h": mpmath.hermite,
    "laguerre_polynomial_l": lambda n, x: mpmath.laguerre(n, 0, x),
    "legendre_polynomial_p": mpmath.legendre,
    "shifted_chebyshev_polynomial_t": lambda n, x: mpmath.chebyt(n, 2 * x - 1),
    "shifted_chebyshev_polynomial_u": lambda n, x: mpmath.chebyu(n, 2 * x - 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_in_double_precision(name):
    points = POINTS + ([-p for p in POINTS] if name == "airy_ai" else [])
    got = getattr(S, name)(torch.tensor(points, dtype=torch.float64)).tolist()
    with mpmath.workdps(40):
        for x, value in zip(points, got, strict=True):
            exact = FUNCTIONS[name](mpmath.mpf(x))
            scale = abs(exact) + mpmath.mpf("0.05") / (1 + abs(x)) * (name[:6] in ("bessel", "airy_a"))
            assert abs(value - exact) < 2e-14 * (1 + abs(x)) ** 1.5 * scale, (x, value, exact)


@pytest.mark.parametrize("name", POLYNOMIALS)
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 7, 12])
def test_polynomial(name, degree):
    points = [-1.7, -0.3, 0.2, 0.37, 0.99, 1.01, 2.5]
    got = getattr(S, name)(torch.tensor(points, dtype=torch.float64), degree).tolist()
    for x, value in zip(points, got, strict=True):
        assert value == pytest.approx(float(POLYNOMIALS[name](degree, mpmath.mpf(x))), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("kind", "tuvw")
def test_chebyshev_kinds_agree_between_recurrence_and_closed_form(kind):
    f = getattr(S, f"chebyshev_polynomial_{kind}")
    x = torch.linspace(-0.99, 0.99, 31, dtype=torch.float64)
    for n in range(7, 30):
        assert torch.allclose(f(x, n + 1), 2 * x * f(x, n) - f(x, n - 1), atol=1e-10)


def test_hostile_degrees_and_types():
    x = torch.tensor([0.5, 2.0])
    assert S.laguerre_polynomial_l(x, -3).tolist() == [0.0, 0.0]
    assert S.legendre_polynomial_p(x, torch.tensor(float("nan"))).tolist() == [0.0, 0.0]
    assert S.chebyshev_polynomial_t(x, 10**6).isfinite().tolist() == [True, False]
    assert S.bessel_j0(torch.tensor([1, 2])).dtype == torch.float32
    with pytest.raises(TypeError, match="must be Tensor"):
        S.hermite_polynomial_he(2.0, 3)
    with pytest.raises(NotImplementedError, match="ComplexFloat"):
        S.airy_ai(torch.ones(2, dtype=torch.complex64))


def test_poles_and_limits():
    x = torch.tensor([0.0, -1.0, float("inf"), float("nan")])
    assert str(S.bessel_y0(x).tolist()) == "[-inf, nan, 0.0, nan]"
    assert str(S.modified_bessel_k1(x).tolist()) == "[inf, nan, 0.0, nan]"
    assert S.spherical_bessel_j0(x).tolist()[0] == 1.0


def test_results_follow_pytorch():
    oracle = pytest.importorskip("torch")
    x = [[-3.5, -0.2, 0.4], [1.0, 1.2, 9.0]]
    for name in [n for n in dir(oracle.special) if "polynomial" in n]:
        for n in (0, 1, 2, 6, 7, 10):
            ours = getattr(S, name)(torch.tensor(x, dtype=torch.float64), n)
            theirs = getattr(oracle.special, name)(oracle.tensor(x, dtype=oracle.float64), n)
            assert torch.allclose(ours, torch.from_numpy(theirs.numpy()), rtol=1e-9, equal_nan=True), (
                name,
                n,
            )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_trigamma_by_its_identities(dtype):
    """psi_1(x) = psi_1(x + 1) + 1 / x^2, and psi_1(x) + psi_1(1 - x) = (pi / sin(pi x))^2."""
    x = torch.cat([torch.linspace(-30.3, 30.3, 2001), torch.tensor([1e-3, 7.999, 8.0, 14.999, 1e4])]).to(
        dtype
    )
    x = x[(x - x.round()).abs() > 0.05]
    near = {"rtol": 2e-6 if dtype == torch.float32 else 1e-12, "atol": 0}
    trigamma = torch.polygamma(1, x.double()).to(dtype) if dtype == torch.float64 else torch.polygamma(1, x)
    exact = torch.polygamma(1, x.double() + 1) + x.double() ** -2
    torch.testing.assert_close(trigamma.double(), exact, **near)
    mirrored = (torch.pi / torch.sin(torch.pi * x.double())) ** 2 - torch.polygamma(1, 1 - x.double())
    torch.testing.assert_close(trigamma.double()[x < 0], mirrored[x < 0], **near)
    ends = torch.polygamma(1, torch.tensor([0.0, -3.0, float("inf"), float("nan")], dtype=dtype))
    assert ends[0] == ends[1] == float("inf") and ends[2] == 0 and ends[3].isnan()
    assert torch.allclose(
        torch.polygamma(1, torch.ones(1, dtype=dtype)), torch.tensor([torch.pi**2 / 6], dtype=dtype)
    )


@pytest.mark.parametrize("name", ["igamma", "igammac", "special.zeta"])
def test_the_first_operand_has_no_derivative(name):
    """Said when a gradient is asked for, as PyTorch does: a missing one would be taken for zero."""
    function = functools.reduce(getattr, name.split("."), torch)
    a, x = (torch.tensor([1.5, 2.5], dtype=torch.float64, requires_grad=True) for _ in range(2))
    function(a.detach(), x).sum().backward()
    assert x.grad.isfinite().all()
    with pytest.raises(NotImplementedError, match="derivative for '(igammac?: input|zeta)' is not"):
        function(a, x).sum().backward()


def test_digamma_just_below_zero_and_integers():
    x = torch.tensor([-1e-30, -1e-300, -2 - 1e-9], dtype=torch.float64)
    assert torch.digamma(x).tolist() == pytest.approx([1e30, 1e300, 1e9], rel=1e-6)
