"""Operands of no elements, of one, and of several dtypes, against PyTorch."""

import pytest

import rushlight as torch

oracle = pytest.importorskip("torch")


def same(f):
    """f(library) for both, compared by dtype, shape and value."""
    ours, theirs = f(torch), f(oracle)
    assert str(ours.dtype) == str(theirs.dtype) and tuple(ours.shape) == tuple(theirs.shape)
    assert ours.detach().flatten().tolist() == pytest.approx(theirs.detach().flatten().tolist(), nan_ok=True)


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "int64", "bool"])
def test_outer_products_are_computed_in_the_common_dtype(dtype):
    def f(m):
        vec = m.arange(5).to(getattr(m, dtype)) * (50 if dtype == "uint8" else 1)
        return m.addr(m.ones(5, 5, dtype=m.float64), vec, vec, beta=0.5, alpha=0.3)

    same(f)


@pytest.mark.parametrize("name", ["bitwise_and_", "bitwise_left_shift_", "copysign_", "remainder_", "xlogy_"])
def test_in_place_results_that_do_not_fit_are_named_first(name):
    integers = name.startswith("bitwise")
    for m in (torch, oracle):
        x = m.ones(2, dtype=m.int64 if integers else m.float32)
        other = m.ones(2, dtype=m.float32 if integers else m.complex64)
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type") as caught:
            getattr(x, name)(other)
        assert not isinstance(caught.value, NotImplementedError)


def test_the_slope_of_acosh_at_infinity():
    def f(m):
        x = m.tensor([float("inf"), 2.0, 1.0, float("-inf")], dtype=m.float64, requires_grad=True)
        m.acosh(x).sum().backward()
        return x.grad

    same(f)


@pytest.mark.parametrize("shape", [(), (0,), (1,)])
def test_second_gradients_of_a_variance_without_degrees_of_freedom(shape):
    def f(m):
        x = m.full(shape, 3.0, dtype=m.float64, requires_grad=True)
        g = m.ones((), dtype=m.float64, requires_grad=True)
        (first,) = m.autograd.grad(m.var(x, correction=1), x, g, create_graph=True)
        return m.autograd.grad(first.sum(), g)[0]

    same(f)


def test_scattering_nothing_has_two_gradients():
    for m in (torch, oracle):
        x, src = (m.ones(n, 0, dtype=m.float64, requires_grad=True) for n in (3, 2))
        y = m.scatter_reduce(x, 0, m.zeros(2, 0, dtype=m.int64), src, "amax")
        first = m.autograd.grad(
            y, (x, src), m.ones(3, 0, dtype=m.float64, requires_grad=True), create_graph=True
        )
        assert [t.requires_grad for t in first] == [True, True]


def test_sparse_tensors_of_no_rows():
    same(lambda m: m.ones(0, 5).to_sparse(1).to_dense())
    assert torch.ones(0, 5).to_sparse(1).dense_dim() == 1


def test_triangular_factors_of_nothing():
    same(lambda m: m.cholesky(m.ones(0, 5)))
    same(lambda m: m.cholesky(m.ones(5, 0)))


def test_integrals_of_integers():
    same(lambda m: m.trapezoid(m.ones(2, 0, dtype=m.int64)))
    same(lambda m: m.trapezoid(m.tensor([1, 2, 4]), m.tensor([0, 1, 5])))
    same(lambda m: m.cumulative_trapezoid(m.tensor([1, 2, 4]), m.tensor([0, 1, 5])))
    big = 2**62
    same(lambda m: m.trapezoid(m.tensor([big, big]), m.tensor([0, 1])))
