"""Tangents and second derivatives of operators whose rules are not the plain ones, against PyTorch's."""

import pytest

import rushlight

oracle = pytest.importorskip("torch")


def tangent(m, f, *pairs):
    """The tangent of f at the first of each pair, in the direction of the second."""
    forward = m.autograd.forward_ad
    with forward.dual_level():
        return forward.unpack_dual(
            f(*(forward.make_dual(m.tensor(x), m.tensor(t)) for x, t in pairs))
        ).tangent


def same(f):
    ours, theirs = f(rushlight), f(oracle)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.flatten().tolist() == pytest.approx(theirs.flatten().tolist(), rel=1e-5)


POINT, DIRECTION = [[0.5, -2.0, 4.0], [1.0, 1.0, -3.0]], [[1.0, -1.0, 0.0], [0.25, 2.0, -3.0]]


@pytest.mark.parametrize("dim", [0, 1])
def test_running_sums_of_exponentials(dim):
    same(lambda m: tangent(m, lambda x: m.logcumsumexp(x, dim), (POINT, DIRECTION)))


def test_running_sums_of_exponentials_of_one_number():
    same(lambda m: tangent(m, lambda x: m.logcumsumexp(x, 0), (2.0, -0.5)))


@pytest.mark.parametrize("name", ["nansum", "nanmean"])
@pytest.mark.parametrize("dim", [None, 0])
def test_what_is_no_number_does_not_count(name, dim):
    kwargs = {} if dim is None else {"dim": dim}
    pair = ([1.0, float("nan"), 2.0], [1.0, 10.0, 100.0])
    same(lambda m: tangent(m, lambda x: getattr(m, name)(x, **kwargs), pair))


def test_rows_that_learn_nothing_still_move():
    rows = [[1.0, 2.0], [3.0, 4.0]]

    def f(m):
        indices = m.tensor([1, 0, 1])
        embedding = m.nn.functional.embedding
        return tangent(m, lambda w: embedding(indices, w, padding_idx=1), (rows, rows))

    same(f)


@pytest.mark.parametrize("dims", [1, 2])
def test_positions_that_are_written_twice(dims):
    def f(m):
        indices = m.zeros(1, *[1] * (dims - 1), 2, dtype=m.int64)
        unpool = getattr(m.nn.functional, f"max_unpool{dims}d")
        pair = ([[3.0, 5.0]], [[1.0, 2.0]]) if dims == 1 else ([[[3.0, 5.0]]], [[[1.0, 2.0]]])
        threads = m.get_num_threads()
        m.set_num_threads(1)  # PyTorch's threads race for such a position
        try:
            return tangent(m, lambda x: unpool(x, indices, 2), pair)
        finally:
            m.set_num_threads(threads)

    same(f)


def z(m):
    return m.tensor([0.5 + 1j, -1.0 + 0.25j], dtype=m.complex128, requires_grad=True)


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_complex_tangents(name):
    def f(m):
        forward = m.autograd.forward_ad
        with forward.dual_level():
            x = forward.make_dual(z(m).detach(), m.tensor([1.0 - 2j, 0.5j], dtype=m.complex128))
            return m.view_as_real(forward.unpack_dual(getattr(m, name)(x)).tangent)

    same(f)


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
@pytest.mark.parametrize("which", [0, 1])
def test_complex_second_derivatives(name, which):
    def f(m):
        x, g = z(m), m.tensor([1.0 - 2j, 0.5j], dtype=m.complex128, requires_grad=True)
        (first,) = m.autograd.grad(getattr(m, name)(x), x, g, create_graph=True)
        seed = m.tensor([0.25 + 1j, -1.0j], dtype=m.complex128)
        return m.view_as_real(m.autograd.grad(first, [x, g], seed)[which])

    same(f)
