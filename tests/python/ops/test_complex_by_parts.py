"""Functions of complex numbers that are computed by blocks of parts: Python's values, equal bits in all
places, whatever stands beside a number."""

import cmath
import math

import pytest

import rushlight as torch

FUNCTIONS = {
    "sgn": lambda z: z / abs(z),
    "reciprocal": lambda z: 1 / z,
    "conj_physical": lambda z: z.conjugate(),
    "angle": cmath.phase,
}


def numbers(dtype, count=1003):
    torch.manual_seed(3)
    return torch.randn(count, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_places(name, dtype):
    function, z = getattr(torch, name), numbers(dtype)
    bound = 3e-7 if dtype == torch.complex64 else 1e-15
    expected = [FUNCTIONS[name](x) for x in z.tolist()]
    whole = function(z)
    for found, right in zip(whole.tolist(), expected, strict=True):
        assert abs(found - right) <= bound * abs(right)
    for other in (
        torch.cat([function(part) for part in z.split(13)]),
        function(z.repeat_interleave(3)[1::3]),
    ):
        assert other.tolist() == whole.tolist()
    written = z.clone()
    if whole.is_complex():
        assert getattr(torch, name)(written, out=written).tolist() == whole.tolist()


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_a_number_far_out_does_not_change_its_neighbours(dtype):
    z = numbers(dtype, 64)
    for far in (0j, complex(1e-300, 0), complex(3e38, 3e38), complex(math.inf, 1), complex(math.nan, 0)):
        mixed = z.clone()
        mixed[5] = far
        for name in FUNCTIONS:
            found, alone = getattr(torch, name)(mixed), getattr(torch, name)(z)
            keep = [i for i in range(64) if i != 5]
            assert found[keep].tolist() == alone[keep].tolist()
    assert torch.sgn(torch.zeros(40, dtype=dtype)).tolist() == [0j] * 40
