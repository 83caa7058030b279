"""uint16, uint32 and uint64 do what int16 does, wherever int16 does something and no result is negative."""

import math

import numpy as np
import pytest
from engine import flatten, maker, resolve
from loader import each

import rushlight

ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)


def in_dtype(value, dtype):
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.array(value)
        if array.dtype.kind not in "iu":
            return rushlight.from_numpy(array)
        return rushlight.from_numpy(np.abs(array).astype(np.int64)).to(dtype)
    if isinstance(value, (list, tuple)):
        return type(value)(in_dtype(v, dtype) for v in value)
    if isinstance(value, str) and value.startswith("dtype:"):
        return getattr(rushlight, value[6:])
    return value


def outcome(row, sample, dtype):
    rushlight.manual_seed(0)
    args = [in_dtype(v, dtype) for v in sample.args]
    result = resolve(rushlight, row.name)(*args, **{k: in_dtype(v, dtype) for k, v in sample.kwargs.items()})
    return [leaf for leaf in flatten(result) if isinstance(leaf, rushlight.Tensor)]


def samples_of(row):
    return list(row.samples(maker(row, "uint8", 3)))[:6]


def signed_outcome(row, sample):
    """The results for int16; None where that is refused, or does not fit into unsigned numbers."""
    try:
        results = outcome(row, sample, rushlight.int16)
    except ERRORS:
        return None
    negative = any(r.dtype == rushlight.int16 and r.numel() and r.min() < 0 for r in results)
    return None if negative else results


@each("unsigned")
def test_unsigned_as_signed(row):
    compared = 0
    for sample in samples_of(row):
        expected = signed_outcome(row, sample)
        if expected is None:
            continue
        for dtype in (rushlight.uint16, rushlight.uint32, rushlight.uint64):
            for mine, other in zip(outcome(row, sample, dtype), expected, strict=True):
                assert mine.dtype == (dtype if other.dtype == rushlight.int16 else other.dtype)
                same = np.array(mine.tolist()), np.array(other.tolist())
                np.testing.assert_allclose(*same, rtol=1e-6)
                compared += 1
    if not compared:
        pytest.skip("int16 is refused, or has negative results")


@pytest.mark.parametrize("name", ["uint8", "uint16", "uint64"])
def test_hardtanh_refuses_negative_limits(name):
    x = rushlight.tensor([0, 1, 5], dtype=getattr(rushlight, name))
    assert rushlight.nn.functional.hardtanh(x, 1, 3).tolist() == [1, 1, 3]
    with pytest.raises(RuntimeError, match="unsigned type with negative limits"):
        rushlight.nn.functional.hardtanh(x, -1, 3)


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_running_sums_and_products(name):
    dtype = getattr(rushlight, name)
    x = rushlight.tensor([3, 2**15 + 1, 4], dtype=dtype)
    wide = np.array(x.tolist(), dtype=name)
    assert rushlight.cumsum(x, 0, dtype=dtype).tolist() == np.cumsum(wide, dtype=name).tolist()
    assert rushlight.cumprod(x, 0, dtype=dtype).tolist() == np.cumprod(wide, dtype=name).tolist()
    assert x.cumsum(0).dtype == rushlight.int64


def test_bounds_of_clamp():
    for dtype in (rushlight.uint16, rushlight.uint32, rushlight.uint64):
        x = rushlight.tensor([1, 3], dtype=dtype)
        assert x.clamp(-1, 2).tolist() == [1, 2] and x.clamp(max=-1).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        rushlight.tensor([1, 3], dtype=rushlight.uint8).clamp(0, 300)


@pytest.mark.parametrize("name", ["e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu"])
def test_numbers_beyond_the_range_of_eight_bits(name):
    """e4m3fn gives its largest number, the formats with one infinity, those without zero's sign NaN."""
    torch = pytest.importorskip("torch")
    values = [x * s for x in (448.0, 464.0, 464.5, 500.0, 57344.0, 61440.0, 1e9, math.inf) for s in (1, -1)]
    codes = []
    for lib in (rushlight, torch):
        dtype = getattr(lib, f"float8_{name}")
        for wide in (lib.float32, lib.float64):
            codes.append(lib.tensor(values, dtype=wide).to(dtype).view(lib.uint8).tolist())
    assert codes[:2] == codes[2:]
    if name == "e4m3fn":
        x = rushlight.tensor(values).to(rushlight.float8_e4m3fn).float()
        assert x.tolist() == [448.0, -448.0] * (len(values) // 2)
