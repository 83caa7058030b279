"""Powers at the edges: which exponents have a formula of their own, and 0j ** 0j."""

import math

import pytest

import rushlight

oracle = pytest.importorskip("torch")

REALS = [-math.inf, -2.0, -0.0, 0.0, 1.0, 3.0, math.inf, math.nan]
COMPLEX = [0j, 1 + 0j, -1 + 0j, 2 + 3j, complex(math.inf, 0), complex(math.nan, 0), -2j]


def close(mine, theirs):
    """Equal to the last digits, with the same signs of zeros and infinities."""
    mine, theirs = mine.tolist(), theirs.tolist()
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        for x, y in ((complex(a).real, complex(b).real), (complex(a).imag, complex(b).imag)):
            assert x == pytest.approx(y, rel=2e-6, abs=1e-6, nan_ok=True), (mine, theirs)
            assert x != 0 or y != 0 or isinstance(a, complex) or math.copysign(1, x) == math.copysign(1, y)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("exponent", [0, 0.5, -0.5, -1, 1, 2, 3])
@pytest.mark.parametrize("kind", ["number", "tensor of no dimensions"])
def test_real(dtype, exponent, kind):
    def power(torch):
        x = torch.tensor(REALS, dtype=getattr(torch, dtype))
        return x ** (exponent if kind == "number" else torch.tensor(exponent))

    close(power(rushlight), power(oracle))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("exponent", [0, 0j, 1, 1 + 0j, 2, 2 + 0j, 3, 0.5, 0.5 + 0j])
@pytest.mark.parametrize("kind", ["number", "tensor", "tensor of no dimensions"])
def test_complex(dtype, exponent, kind):
    def power(torch):
        x = torch.tensor(COMPLEX, dtype=getattr(torch, dtype))
        made = {
            "number": lambda: exponent,
            "tensor": lambda: torch.full(x.shape, exponent, dtype=x.dtype),
            "tensor of no dimensions": lambda: torch.tensor(exponent),
        }
        return x ** made[kind]()

    close(power(rushlight), power(oracle))


@pytest.mark.parametrize("base", [1, 1.0, 1 + 0j, 0j, 2])
def test_base_that_is_a_number(base):
    for values in (REALS, COMPLEX):
        close(rushlight.pow(base, rushlight.tensor(values)), oracle.pow(base, oracle.tensor(values)))


def test_float_power_of_complex_numbers_by_a_number():
    x = [0j, 1j, complex(math.inf, 0)]
    close(rushlight.float_power(rushlight.tensor(x), 0), oracle.float_power(oracle.tensor(x), 0))


def test_results_that_are_given():
    x = rushlight.tensor([0j, 2j])
    out = rushlight.empty(2, dtype=rushlight.complex64)
    assert rushlight.pow(x, 0, out=out) is out
    assert out.tolist() == [1, 1]
    assert x.pow_(0).tolist() == [1, 1]
    assert rushlight.empty(0).pow(0).shape == (0,)
