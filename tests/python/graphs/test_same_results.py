"""`torch._dynamo.utils.same`, by which tests of compilers compare results."""

import importlib

import pytest

import rushlight as rl
from rushlight._command.names import is_aliased

NAN = float("nan")

CASES = [
    (lambda t: (t.ones(3), t.ones(3) + 1e-5), {}),
    (lambda t: (t.ones(3), t.ones(3) + 1e-2), {}),
    (lambda t: (t.ones(3), t.ones(3) + 1e-2), {"tol": 0.1}),
    (lambda t: (t.ones(3), t.ones(3) + 1e-2), {"cos_similarity": True}),
    (lambda t: (t.ones(3), -t.ones(3)), {}),
    (lambda t: (t.ones(3), t.ones(3).double()), {}),
    (lambda t: (t.ones(3), t.ones(3).double()), {"exact_dtype": False}),
    (lambda t: (t.tensor([NAN]), t.tensor([NAN])), {}),
    (lambda t: (t.tensor([NAN]), t.tensor([NAN])), {"equal_nan": True}),
    (lambda t: (t.tensor([1, 2]), t.tensor([1, 2])), {}),
    (lambda t: (t.tensor([1, 2]), t.tensor([1, 3])), {}),
    (lambda t: (t.tensor([True]), t.tensor([True])), {}),
    (lambda t: ({"a": t.ones(2), "b": [1, None]}, {"a": t.ones(2), "b": [1, None]}), {}),
    (lambda t: ((t.ones(2), 2.5), (t.ones(2), 2.5)), {}),
    (lambda t: ((t.ones(2), "x"), (t.ones(2), "y")), {}),
    (lambda t: (t.ones(2, dtype=t.complex64), t.ones(2, dtype=t.complex64) * 1j), {}),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_same(case):
    make, options = CASES[case]
    if is_aliased():
        pytest.skip("compares with PyTorch")
    torch = pytest.importorskip("torch")
    expected = importlib.import_module("torch._dynamo.utils").same(*make(torch), **options)
    assert rl._dynamo.utils.same(*make(rl), **options) is bool(expected)


def test_beside_results_in_double_precision():
    exact = rl.randn(100, dtype=rl.float64)
    ours, theirs = (exact + rl.randn(100).double() * 1e-2).float(), (exact + rl.randn(100) * 1e-2).float()
    same = rl._dynamo.utils.same
    assert not same(ours, theirs)
    assert same(ours, theirs, exact)
    assert not same(ours, (exact + 1).float(), exact)


def test_containers_and_shapes_that_differ():
    same = rl._dynamo.utils.same
    assert not same(rl.ones(3), rl.ones(4), tol=9.0)
    assert not same([rl.ones(3)], [rl.ones(3), 1])
    with pytest.raises(AssertionError, match="keys mismatch"):
        same({"a": 1}, {"b": 1})
