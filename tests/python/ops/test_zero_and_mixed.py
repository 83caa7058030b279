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


def test_outer_products_with_a_sum_of_no_dimension():
    same(lambda m: m.addr(m.tensor(1.83), m.arange(5.0).bfloat16(), m.arange(5.0).bfloat16()))
    same(lambda m: m.addr(m.tensor(4, dtype=m.int32), *[m.full((3,), 100, dtype=m.uint8)] * 2))


def test_counts_of_nothing_are_integers():
    same(lambda m: m.bincount(m.zeros(0, dtype=m.int64), weights=m.zeros(0), minlength=2))


def test_products_and_clamps_of_two_dtypes():
    for m in (torch, oracle):
        with pytest.raises(RuntimeError, match="addmv input tensors must have the same dtype"):
            m.addmv(m.ones(5), m.ones(5, 2, dtype=m.bool), m.ones(2, dtype=m.bool))
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
            m.ones(2).clamp_min_(m.ones(2, dtype=m.complex64))


def test_distances_that_count_have_no_slope():
    def f(m):
        x = m.tensor([[float("inf"), 1.0], [2.0, float("nan")]], requires_grad=True)
        m.cdist(x, m.ones(3, 2), p=0.0).sum().backward()
        return x.grad

    same(f)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "__rsub__", "__rtruediv__", "lt"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_numbers_beside_halves_are_rounded_alike_in_every_layout(name, dtype):
    """To the last bit: PyTorch multiplies and divides by the number itself, and rounds it for all else."""
    values = torch.linspace(0.1, 3, 12 * 18).reshape(12, 18).numpy()
    for layout in (lambda t: t, lambda t: t[:, ::2], lambda t: t.t()):

        def f(m, layout=layout):
            return getattr(layout(m.from_numpy(values).to(getattr(m, dtype))), name)(0.4473744)

        assert f(torch).tolist() == f(oracle).tolist()


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 3, 0), (0, 3)])
@pytest.mark.parametrize("training", [True, False])
def test_batches_without_numbers_leave_no_gradient(shape, training):
    def f(m):
        layer = m.nn.BatchNorm1d(3).train(training)
        torch.full((3,), 7.0)  # memory that is not zero, freed at once
        layer(m.empty(shape)).sum().backward()
        return m.cat([layer.weight.grad, layer.bias.grad])

    same(f)
