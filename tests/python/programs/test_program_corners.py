"""Corners that random programs beside PyTorch met: arguments, whose memory a result is, hooks."""

import pytest

import rushlight as torch
from rushlight.autograd.graph import get_gradient_edge

F = torch.nn.functional
MATRIX = [[4.0, 1.0], [1.0, 3.0]]


# --- tensors without dimensions, and without elements


def test_movedim_of_no_dimensions():
    x = torch.tensor(1.5)
    for moved in (x.movedim(0, 0), x.movedim(0, -1), x.moveaxis((0,), (-1,)), x.movedim((), ())):
        assert moved.shape == () and moved.item() == 1.5
    with pytest.raises(IndexError):
        x.movedim(1, 0)


def test_unflatten_needs_a_dimension():
    with pytest.raises(IndexError, match="has no dimensions"):
        torch.unflatten(torch.tensor(1.5), 0, (1,))


def test_topk_of_no_dimensions_is_the_tensor():
    for k in (0, 1):
        values, indices = torch.topk(torch.tensor(1.5), k)
        assert values.item() == 1.5 and indices.item() == 0


def test_block_diag_of_nothing():
    assert torch.block_diag().shape == (1, 0)


# --- what arguments may be


def test_none_for_an_empty_list():
    x = torch.tensor([[1.0, 5.0], [3.0, 2.0]])
    assert torch.amax(x, None).item() == 5 and x.amin(dim=None).item() == 1
    assert x.amax(None, True).shape == (1, 1)
    assert x.roll(1, None).tolist() == [[2, 1], [5, 3]]
    with pytest.raises(TypeError):
        torch.permute(x, None)


def test_any_number_says_inplace():
    x = torch.tensor([-1.0, 2.0])
    assert F.relu(x, 1) is x and x.tolist() == [0, 2]
    y = torch.tensor([-1.0, 2.0])
    assert F.hardtanh(y, 0, 1, 0).tolist() == [0, 1] and y.tolist() == [-1, 2]
    with pytest.raises(TypeError):
        F.relu(x, "yes")


# --- results of operators that reshape what they computed are tensors of their own


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


@pytest.mark.parametrize("heads_inside", [False, True])
def test_attention_lies_as_its_query(heads_inside):
    q = torch.randn(2, 4, 16, 8) if not heads_inside else torch.randn(2, 16, 4, 8).transpose(1, 2)
    assert F.scaled_dot_product_attention(q, q, q).stride() == q.stride()


# --- hooks and graphs


def test_hooks_of_outputs_without_gradient_see_none():
    seen = []
    x = torch.ones(2, requires_grad=True)
    first, second = x.unbind()
    first.register_hook(seen.append)
    second.backward()
    assert seen == [None] and x.grad.tolist() == [0, 1]


def test_inputs_that_are_no_leaves_run_their_nodes_hooks():
    log = []
    a = torch.tensor(1.0, requires_grad=True)
    b = a.clone()
    b.grad_fn.register_prehook(lambda grads: log.append("node"))
    b.register_hook(lambda g: log.append("tensor"))
    b.sum().backward(inputs=(b,))
    assert log == ["tensor", "node"] and b.grad.item() == 1 and a.grad is None


def test_gradients_of_outputs_that_have_none_may_stay_none():
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            constant = x.clone()
            ctx.mark_non_differentiable(constant)
            ctx._materialize_non_diff_grads = False
            return x.clone(), constant

        @staticmethod
        def backward(ctx, grad, of_constant):
            assert of_constant is None
            return grad * 3

    x = torch.ones(2, requires_grad=True)
    Two.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_gradient_edges_as_outputs():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    scalar, vector = get_gradient_edge((x * x).sum()), get_gradient_edge(x * 3)
    assert torch.autograd.grad(scalar, x)[0].tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        torch.autograd.grad(vector, x)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        torch.autograd.grad(vector, x, grad_outputs=torch.ones(4))
    other = get_gradient_edge(torch.ones(1, requires_grad=True) * 1)
    with pytest.raises(RuntimeError, match="GradientEdge"):
        torch.autograd.grad((x * 3).sum(), (x, other), allow_unused=True, materialize_grads=True)


def test_numbers_are_not_shown_to_hooks_on_saved_tensors():
    def refuse(tensor):
        raise AssertionError("nothing needs to be saved")

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(refuse, refuse):
        (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_what_hooks_give_for_a_leaf_is_a_leaf():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x.pow(3)
    saved = y.grad_fn._saved_self
    assert saved.is_leaf and saved.requires_grad and saved.grad_fn is None
    assert repr(saved) == "tensor([1., 1.], requires_grad=True)"
    (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    gradient.sum().backward()
    assert x.grad.tolist() == [6, 6] and saved.grad is None


def test_hooks_must_not_write_to_what_is_saved():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
        with pytest.raises(RuntimeError, match="modifying its input in place"):
            torch.exp(x)


# --- functions


def test_functions_take_attributes():
    try:
        F.relu.default_init = "kaiming"
        assert F.relu.default_init == "kaiming" and F.relu(torch.tensor(-1.0)).item() == 0
        assert not hasattr(F.gelu, "default_init") and F.relu.__name__ == "relu"
    finally:
        del F.relu.default_init
    assert not hasattr(F.relu, "default_init")


def test_tensors_as_one_vector():
    from rushlight._utils import _flatten_dense_tensors, _unflatten_dense_tensors

    tensors = [torch.arange(6.0).view(2, 3).t(), torch.empty(0, 2), torch.tensor(7.0)]
    flat = _flatten_dense_tensors(tensors)
    assert flat.tolist() == [0, 3, 1, 4, 2, 5, 7] and _flatten_dense_tensors(tensors[:1]).shape == (6,)
    first, empty, last = _unflatten_dense_tensors(flat, tensors)
    assert first.tolist() == tensors[0].tolist() and empty.shape == (0,) and last.item() == 7
    first.zero_()
    assert flat.sum() == 7


def test_iterators_take_loaders_that_have_neither_samplers_nor_batch_sizes():
    from rushlight.utils.data import _resume

    class Loader:  # as fastai makes them
        generator = None

    assert _resume._generators(Loader()) == {} and _resume._samplers(Loader()) == {}
