"""Vandermonde matrices, filled copies and slices of bounded norm, which are computed in few passes."""

import pytest

import rushlight as rl
from rushlight import testing


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool", "complex64", "bfloat16"])
@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_vandermonde_matrices(dtype, count):
    torch = pytest.importorskip("torch")
    numbers = [3.0, -0.5, 0.0, 2.25, 1.0]
    ours = rl.tensor(numbers).abs().to(getattr(rl, dtype))
    theirs = torch.tensor(numbers).abs().to(getattr(torch, dtype))
    for increasing in (False, True):
        found = rl.vander(ours, count, increasing)
        expected = torch.vander(theirs, count, increasing)
        assert str(found.dtype).split(".")[1] == str(expected.dtype).split(".")[1]
        assert found.shape == expected.shape and found.tolist() == expected.tolist()
    if count > 1 and dtype not in ("bool", "bfloat16"):
        expected = torch.linalg.vander(theirs, N=count)
        found = rl.linalg.vander(ours, N=count)
        assert found.tolist() == expected.tolist() and found.stride() == expected.stride()


def test_slopes_of_vandermonde_matrices():
    x = rl.tensor([0.5, -1.5, 0.0, 2.0], dtype=rl.float64, requires_grad=True)
    for function in (lambda t: rl.vander(t, 4), lambda t: rl.linalg.vander(t.reshape(2, 2), N=5)):
        assert rl.autograd.gradcheck(function, (x,)) and rl.autograd.gradgradcheck(function, (x,))


def test_filled_copies():
    x = rl.ones(3, 4).t()
    y = rl.fill(x, 2.5)
    assert y.tolist() == [[2.5] * 3] * 4 and y.stride() == x.stride() and x.eq(1).all()
    wide = rl.fill(rl.ones(1).expand(5), 3)
    assert wide.tolist() == [3.0] * 5 and wide.stride() == (1,)
    x, value = rl.ones(2, 2, requires_grad=True), rl.tensor(4.0, requires_grad=True)
    rl.fill(x, value).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0]] * 2 and value.grad.item() == 4
    _, tangent = rl.func.jvp(lambda v: rl.fill(rl.zeros(3), v), (rl.tensor(1.0),), (rl.tensor(2.0),))
    assert tangent.tolist() == [2.0] * 3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_slices_of_bounded_norm_are_rounded_once(dtype, p):
    x = rl.randn(64, 33, generator=rl.Generator().manual_seed(0)).to(getattr(rl, dtype))
    for given, dim in ((x, 0), (x.t(), 0), (x.reshape(8, 8, 33), 1)):
        exact = rl.renorm(given.double(), p, dim, 5.0)
        found = rl.renorm(given, p, dim, 5.0)
        assert found.dtype == given.dtype and found.is_contiguous()
        half = rl.finfo(found.dtype).eps / 2
        testing.assert_close(found.double(), exact, rtol=half * 1.05 + 5e-7, atol=1e-7)
        recorded = rl.renorm(given.detach().requires_grad_(True), p, dim, 5.0)
        assert rl.equal(recorded, found)
