"""Formulas without branches keep the values that their libraries' functions have."""

import functools
import math
import re
import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch")


def ours(tensor):
    return rushlight.from_numpy(tensor.numpy())


def same(result, expected, **tolerance):
    tolerance = tolerance or {"rtol": 0, "atol": 0}
    torch.testing.assert_close(torch.from_numpy(result.numpy()), expected, equal_nan=True, **tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["fmod", "remainder"])
def test_remainders_are_exact(dtype, name):
    x = torch.randn(3000).to(getattr(torch, dtype)) * torch.logspace(
        -12, 12, 3000, dtype=getattr(torch, dtype)
    )
    y = x.flip(0).contiguous()
    corners = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5.5, 1e30, -3e-30]
    x[:100] = torch.tensor(corners).repeat(10)
    y[:100] = torch.tensor(corners).repeat_interleave(10)
    for a, b in [(x, y), (x[1:2], y), (x, y[5:6])]:
        result = getattr(rushlight, name)(ours(a), ours(b))
        for got, p, q in zip(
            result.tolist(), *(t.tolist() for t in torch.broadcast_tensors(a, b)), strict=True
        ):
            if q == 0 or math.isinf(p) or p != p or q != q:
                assert got != got
                continue
            want = math.fmod(p, q)
            if name == "remainder" and want != 0 and (want < 0) != (q < 0):
                want = torch.tensor(want + q, dtype=x.dtype).item()
            assert got == want, (p, q)
            assert want != 0 or math.copysign(1, got) == math.copysign(1, p), (p, q)


def test_atan2_within_a_unit():
    y, x = torch.randn(2, 200000)
    exact = torch.atan2(y.double(), x.double())
    unit = torch.nextafter(exact.float().abs(), torch.tensor(math.inf)).double() - exact.float().abs()
    error = (torch.from_numpy(rushlight.atan2(ours(y), ours(x)).numpy()).double() - exact).abs() / unit
    assert error.max() < 1
    corners = torch.tensor([0.0, -0.0, 1.0, -2.0, math.inf, -math.inf, math.nan, 1e-45, 3e38])
    a, b = corners.repeat(9), corners.repeat_interleave(9)
    result, expected = torch.from_numpy(rushlight.atan2(ours(a), ours(b)).numpy()), torch.atan2(a, b)
    same(ours(result), torch.atan2(a.double(), b.double()).float())
    assert torch.equal(result.signbit()[~expected.isnan()], expected.signbit()[~expected.isnan()])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_quotients(dtype):
    x, y = (torch.randn(2, 1001, 2, dtype=torch.float64) * 3).unbind(0)
    x, y = (torch.view_as_complex(t.contiguous()).to(getattr(torch, dtype)) for t in (x, y))
    for z in (x, y):
        z[:4] = torch.tensor([0, complex(0, 1), complex(-1, 0), complex(1e-30, 1e30)])
    y[0] = 1
    close = {"rtol": 1e-6 if dtype == "complex64" else 1e-14, "atol": 0}
    same(ours(x) / ours(y), x / y, **close)
    same(ours(y).reciprocal(), y.reciprocal(), **close)
    same(ours(x) * ours(y), x * y, rtol=1e-5, atol=1e-5)


def unary_functions():
    """{name: (ours, PyTorch's)} of what takes a tensor and gives one of its shape, the same each time."""
    found = {}
    for prefix in ("", "special", "nn.functional"):
        homes = [functools.reduce(getattr, filter(None, prefix.split(".")), m) for m in (rushlight, torch)]
        for name in set(dir(homes[0])) & set(dir(homes[1])):
            if not re.match(r"_|sym_|.*(rand|dropout|empty|rrelu|gumbel|bernoulli|poisson)|.*_$|set_", name):
                mine, other = (getattr(home, name) for home in homes)
                if callable(other) and not isinstance(other, type):
                    found[f"{prefix}.{name}".lstrip(".")] = mine, other
    return found


def shaped_like(function, x):
    """What the function gives of `x`, or None where it is no tensor of its shape."""
    try:
        result = function(x)
    except (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        return None
    fits = isinstance(result, type(x)) and result.shape == x.shape and result.is_floating_point()
    return result.detach() if fits and not result.is_sparse else None


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_zeros_have_the_signs_that_pytorch_gives_them(dtype):
    """Of zeros of both signs, wherever they stand; where PyTorch's own loops differ, either sign."""
    kind, seen = getattr(torch, dtype), 0
    line = torch.tensor([0.0, -0.0, -0.0] * 13 + [1.0, -0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (mine, other) in unary_functions().items():
            wanted = shaped_like(other, line.to(kind))
            alone = [shaped_like(other, line[i : i + 1].to(kind)) for i in (0, 1)]
            if any(t is None for t in (wanted, *alone)) or not (wanted == 0).any():
                continue
            sure = (wanted == 0) & (wanted.signbit() == torch.where(line.signbit(), *alone[::-1]).signbit())
            for negative in (True, False):
                same = (line == 0) & (line.signbit() == negative)
                sure &= sure[same].all() | ~same
            seen += bool(sure.any())
            plain = rushlight.from_numpy(line.numpy()).to(getattr(rushlight, dtype))
            for x in (plain, rushlight.stack([plain, plain + 1], 1)[:, 0], plain[:7]):
                signs = torch.from_numpy(mine(x).detach().float().contiguous().signbit().numpy())
                n = len(signs)
                assert torch.equal(signs[sure[:n]], wanted[:n].signbit()[sure[:n]]), (name, x.stride(), n)
    assert seen > 40


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_airys_function_stays_in_its_bounds(dtype):
    x = -(torch.logspace(1, 38, 999, dtype=torch.float64).to(getattr(torch, dtype)))
    found = torch.from_numpy(rushlight.special.airy_ai(ours(x)).numpy()).double()
    bound = 0.5641896 / x.double().abs().pow(0.25)  # 1 / sqrt(pi)
    assert (found.abs() <= bound * 1.001).all()
    assert (found.abs() > bound * 0.5).float().mean() > 0.5
