"""Function transforms: refusals, chunks, older functions of modules, functionalised `out=`."""

import pytest

import rushlight as torch
from rushlight._functorch.eager_transforms import _slice_argnums
from rushlight._functorch.make_functional import (
    functional_init,
    functional_init_with_buffers,
    make_functional_with_buffers,
)
from rushlight.func import functionalize, grad, jacrev, jvp, stack_module_state, vjp, vmap
from rushlight.fx.experimental.proxy_tensor import make_fx


@pytest.mark.parametrize("aux", [1, "text", [torch.ones(1), 2]])
def test_what_comes_beside_the_result_is_tensors(aux):
    x = torch.ones(3)
    for call in (
        lambda: grad(lambda t: (t.sum(), aux), has_aux=True)(x),
        lambda: vjp(lambda t: (t, aux), x, has_aux=True),
        lambda: jvp(lambda t: (t, aux), (x,), (x,), has_aux=True),
    ):
        with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
            call()
    assert grad(lambda t: (t.sum(), None), has_aux=True)(x)[1] is None


def test_hooks_on_saved_tensors_are_refused_inside():
    def hooked(t):
        with torch.autograd.graph.save_on_cpu():
            return t.sin().sum()

    x = torch.ones(3)
    for transform in (grad, jacrev):
        with pytest.raises(RuntimeError, match="saved tensor hooks"):
            transform(hooked)(x)
        with torch.autograd.graph.save_on_cpu(), pytest.raises(RuntimeError, match="saved tensor hooks"):
            transform(lambda t: t.sin().sum())(x)
    y = x.requires_grad_()
    hooked(y).backward()  # allowed again
    assert torch.equal(y.grad, x.detach().cos())


def test_one_row_at_a_time_is_no_vmap():
    class Dynamic(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            g.nonzero()
            return g

    x = torch.randn(2, 3)
    assert torch.equal(jacrev(Dynamic.apply, chunk_size=1)(x), torch.eye(6).reshape(2, 3, 2, 3))
    with pytest.raises(RuntimeError, match="dynamic shape"):
        jacrev(Dynamic.apply, chunk_size=2)(x)


def test_derivatives_of_numbers_by_numbers():
    x = torch.tensor(2.0)
    assert jacrev(lambda a, b: a * b, argnums=(0, 1))(x, x) == (2, 2)
    assert _slice_argnums((1, 2), 1) == (2,)


def test_tied_parameters_stay_tied():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)
            self.weight, self.bias = self.linear.weight, self.linear.bias

        def forward(self, x):
            return torch.nn.functional.linear(self.linear(x), self.weight, self.bias)

    model, x = Tied(), torch.randn(2, 3)
    expected = torch.autograd.grad(model(x).sum(), tuple(model.parameters()))
    function, params, buffers = make_functional_with_buffers(model)
    found = grad(lambda p: function(p, buffers, x).sum())(params)
    assert all(torch.allclose(a, b) for a, b in zip(found, expected, strict=True))


def test_ensembles_made_of_a_class():
    weights, function, names = functional_init(torch.nn.Linear, (4,))(3, 2)
    assert [tuple(w.shape) for w in weights] == [(4, 2, 3), (4, 2)] and names == ("weight", "bias")
    x = torch.randn(4, 5, 3)
    assert torch.allclose(vmap(function)(weights, (x,))[1], x[1] @ weights[0][1].T + weights[1][1], atol=1e-6)
    made = functional_init_with_buffers(torch.nn.BatchNorm1d)(3)
    assert len(made) == 5 and made[4] == ("running_mean", "running_var", "num_batches_tracked")
    with pytest.raises(RuntimeError, match="same .requires_grad"):
        models = [torch.nn.Linear(2, 2) for _ in range(2)]
        models[0].weight.requires_grad_(False)
        stack_module_state(models)


def test_out_of_another_shape_is_functionalised():
    def f(x):
        out = torch.empty(())
        torch.add(x, x, out=out)
        out.view(4).add_(1)
        return out

    x = torch.arange(4.0)
    graph = make_fx(functionalize(f, remove="mutations_and_views"))(x)
    assert torch.equal(graph(x), f(x))
    assert "add_" not in graph.code.replace("add_1", "")


def test_sizes_that_nodes_keep():
    x = torch.ones(2, 3, requires_grad=True)
    assert x.view(6).grad_fn._saved_self_sym_sizes == (2, 3)
    assert x[torch.tensor([0])].grad_fn._saved_self_sym_sizes == (2, 3)


def test_the_backward_of_a_convolution_as_one_operator():
    for transposed in (False, True):
        x, w = torch.randn(2, 4, 6, 6), torch.randn(4, 3 if transposed else 2, 3, 3)
        how = ([2, 2], [1, 1], [1, 1], transposed, [int(transposed)] * 2, 2)
        x.requires_grad_(), w.requires_grad_()
        y = torch.convolution(x, w, None, *how)
        g = torch.randn_like(y)
        expected = torch.autograd.grad(y, (x, w), g)
        found = torch.ops.aten.convolution_backward(g, x, w, [y.shape[1]], *how, [True, True, True])
        assert torch.allclose(found[0], expected[0], atol=1e-5)
        assert torch.allclose(found[1], expected[1], atol=1e-5)
        assert torch.allclose(found[2], g.sum((0, 2, 3)), atol=1e-5)
        only = torch.ops.aten.convolution_backward(g, x, w, None, *how, [False, True, False])
        assert only[0] is None and only[2] is None


INSIDE = {
    "grad": lambda x: grad(lambda t: t.pow(3).sum())(x),
    "vjp": lambda x: vjp(torch.sin, x)[1](x)[0],
    "jvp": lambda x: jvp(torch.sin, (x,), (x,))[1],
    "jacrev": lambda x: jacrev(torch.sin)(x),
    "hessian": lambda x: torch.func.hessian(lambda t: t.pow(3).sum())(x),
    "vmap": lambda x: vmap(grad(lambda t: t**3))(x),
    "nested": lambda x: grad(lambda t: grad(lambda u: u.pow(3).sum())(t).sum())(x),
    "write": lambda x: grad(lambda t: t.clone().mul_(t).sum())(x),
    "view": lambda x: grad(lambda t: t.view(3, 1).square().sum())(x),
}


@pytest.mark.parametrize("name", INSIDE)
def test_inference_mode_around_a_transform_does_not_concern_it(name):
    x = torch.tensor([1.0, 2.0, 3.0])
    expected = INSIDE[name](x)
    assert expected.any()
    with torch.inference_mode():
        for given in (x, torch.tensor([1.0, 2.0, 3.0])):
            assert torch.equal(INSIDE[name](given), expected)
            assert torch.is_inference_mode_enabled() and (given * 2).is_inference()
    assert not torch.is_inference_mode_enabled()


def test_inference_mode_is_back_after_a_transform_that_failed():
    weight = torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        with pytest.raises(ZeroDivisionError):
            grad(lambda t: 1 / 0)(torch.ones(3))
        assert torch.is_inference_mode_enabled()
        found = grad(lambda t: (t * weight).sum())(torch.ones(3))
    assert not found.requires_grad and torch.equal(found, torch.ones(3))
