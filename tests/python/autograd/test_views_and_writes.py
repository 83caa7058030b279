"""Writes to results and to views of them, before and after the backward pass needs them."""

import pytest

import rushlight as torch

F = torch.nn.functional
MATRIX = [[4.0, 1.0], [1.0, 3.0]]


@pytest.mark.parametrize("function", [lambda x: torch.var_mean(x, 0)[0], lambda x: torch.var(x, 0)])
def test_results_may_be_written_to(function):
    x = torch.tensor(MATRIX, requires_grad=True)
    (expected,) = torch.autograd.grad((function(x) * 2).sum(), x)
    y = function(x)
    assert not y._is_view()
    y.mul_(2)
    y.sum().backward()
    assert torch.allclose(x.grad, expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.std_mean(x, 0)[0],
        lambda x: torch.logsumexp(x, 0),
        torch.linalg.cholesky,
        torch.linalg.inv,
        lambda x: torch.linalg.matrix_power(x, -1),
        lambda x: torch.linalg.lstsq(x, torch.ones(2, 1)).solution,
    ],
)
def test_results_that_backward_needs_are_no_views(function):
    y = function(torch.tensor(MATRIX, requires_grad=True))
    assert not y._is_view() and y.add_(1).grad_fn.name() == "AddBackward0"
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_gradients_run_twice_through_a_write_to_a_view():
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    y = F.threshold((x + 1).view_as(x), 0.0, 0.0, True)
    (g,) = torch.autograd.grad(y.sigmoid().sum(), x, create_graph=True)
    g.sum().backward()
    s = torch.sigmoid(x.detach() + 1)
    assert torch.allclose(x.grad, s * (1 - s) * (1 - 2 * s) * torch.tensor([1.0, 0.0, 1.0]))


def test_as_strided_inplace_is_differentiable():
    def program(m, x):
        y = (x * 2).as_strided_((2, 2), (1, 2), 1)
        weight = m.tensor([[1.0, 2.0], [3.0, 4.0]])
        return [y, *m.autograd.grad((y * weight).sum(), [x])]

    oracle = pytest.importorskip("torch")
    ours, theirs = (
        [t.tolist() for t in program(m, m.tensor([0.0, 1.0, 2.0, 3.0, 4.0], requires_grad=True))]
        for m in (torch, oracle)
    )
    assert ours == theirs
