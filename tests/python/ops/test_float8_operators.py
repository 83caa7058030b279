"""Numbers of 8 and 16 bits in operators that PyTorch computes with them, against PyTorch."""

import numpy
import pytest

import rushlight
from rushlight._command.names import is_aliased

FLOAT8 = ["float8_e4m3fn", "float8_e5m2"]


def values_of(t):
    return numpy.array(t.float().tolist())


def both(torch, make):
    ours, theirs = make(rushlight), make(torch)
    assert str(ours.dtype) == str(theirs.dtype)
    numpy.testing.assert_array_equal(values_of(ours), values_of(theirs))


@pytest.fixture
def torch():
    if is_aliased():
        pytest.skip("compares with PyTorch")
    return pytest.importorskip("torch")


def matrix(module, rows, columns, dtype):
    """Small multiples of a half, whose sums are exact."""
    count = rows * columns
    return (module.arange(count).remainder(7) / 2 - 1.5).reshape(rows, columns).to(getattr(module, dtype))


@pytest.mark.parametrize("dtype", FLOAT8)
def test_products_of_float8_are_rounded_once(torch, dtype):
    both(torch, lambda m: matrix(m, 3, 20, dtype) @ matrix(m, 20, 4, dtype))
    both(torch, lambda m: matrix(m, 3, 20, dtype).mm(matrix(m, 4, 20, dtype).t()))
    both(
        torch,
        lambda m: m.addmm(
            matrix(m, 3, 4, dtype), matrix(m, 3, 5, dtype), matrix(m, 5, 4, dtype), beta=2, alpha=0.5
        ),
    )
    both(torch, lambda m: m.nn.functional.linear(matrix(m, 3, 5, dtype), matrix(m, 4, 5, dtype)))


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_is_added_at_indices(torch, dtype):
    at = [1, 0, 1]
    both(
        torch,
        lambda m: matrix(m, 3, 4, dtype).index_put((m.tensor(at),), matrix(m, 3, 4, dtype), accumulate=True),
    )


def test_classes_of_float8_with_infinities(torch):
    values = [0.0, 1.0, float("inf"), float("-inf"), float("nan")]
    for name in ("isinf", "isfinite", "isnan"):
        both(torch, lambda m, name=name: getattr(m, name)(m.tensor(values).to(m.float8_e5m2)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("weighted", [False, True])
def test_histograms_of_halves(torch, dtype, weighted):
    def histogram(m):
        points, edges = m.arange(40).remainder(7) / 2, m.tensor([0.0, 0.5, 1.0, 3.0])
        weight = m.ones(40).to(getattr(m, dtype)) if weighted else None
        return m.histogram(points.to(getattr(m, dtype)), edges.to(getattr(m, dtype)), weight=weight).hist

    both(torch, histogram)
