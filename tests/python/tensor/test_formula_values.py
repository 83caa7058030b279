"""Formulas without branches keep the values that their libraries' functions have."""

import math

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
