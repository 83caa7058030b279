"""Custom autograd Functions inside transforms: setup_context, vmap, generate_vmap_rule, jvp."""

import pytest

import rushlight as torch
from rushlight.func import grad, jacfwd, jacrev, vjp, vmap

close = torch.testing.assert_close


class Generated(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y.sin(), g * x * y.cos()

    @staticmethod
    def jvp(ctx, a, b):
        x, y = ctx.saved_tensors
        return a * y.sin() + x * y.cos() * b


class Straight(torch.autograd.Function):
    """A backward that is not the derivative of forward: it must be used at every level."""

    @staticmethod
    def forward(x):
        return x.round()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def vmap(info, in_dims, x):
        assert info.batch_size == x.shape[in_dims[0]]
        return Straight.apply(x), in_dims[0]


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(4, 3, dtype=torch.float64)


def plain(a, b):
    return a * b.sin()


def test_derivatives(x):
    row = x[0]
    total = lambda f: lambda a: f(a, a + 1).sum()
    close(grad(total(Generated.apply))(row), grad(total(plain))(row))
    nested = lambda f: grad(lambda a: grad(total(f))(a).sum())(row)
    close(nested(Generated.apply), nested(plain))
    close(jacfwd(lambda a: Generated.apply(a, a))(row), jacrev(lambda a: plain(a, a))(row))


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0), (1, None)])
def test_generated_rule(in_dims, x):
    arguments = tuple(x if d is not None else x[0] if in_dims[0] == 0 or d is None else x for d in in_dims)
    if in_dims == (1, None):
        arguments = (x, x[:, 0])
    close(vmap(Generated.apply, in_dims)(*arguments), vmap(plain, in_dims)(*arguments))
    both = lambda f: vmap(grad(lambda a, b: f(a, b).sum(), argnums=(0, 1)), in_dims)(*arguments)
    close(both(Generated.apply), both(plain))
    through = lambda f: grad(lambda a: vmap(f, in_dims)(a, arguments[1]).sum())(arguments[0])
    close(through(Generated.apply), through(plain))


def test_own_rule_and_own_backward(x):
    close(vmap(Straight.apply)(x), x.round())
    close(grad(lambda a: Straight.apply(a).sum())(x), torch.full_like(x, 2))
    close(vmap(grad(lambda a: Straight.apply(a).sum()))(x), torch.full_like(x, 2))
    close(grad(lambda a: grad(lambda b: (Straight.apply(b) * a).sum())(a).sum())(x), torch.full_like(x, 2))
    out, pull = vjp(Straight.apply, x)
    close(pull(torch.ones_like(x))[0], torch.full_like(x, 2))


def test_what_is_missing_is_named(x):
    class Old(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a

    class Bare(torch.autograd.Function):
        @staticmethod
        def forward(a):
            return a

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    with pytest.raises(RuntimeError, match="setup_context"):
        grad(lambda a: Old.apply(a).sum())(x)
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(Bare.apply)(x)


class Scaled(torch.autograd.Function):
    """Its backward leaves it to the engine to sum the factor's gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx._ctx = ctx._saved = "the user's"
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, factor = ctx.saved_tensors
        assert ctx._ctx == ctx._saved == "the user's"
        return g * factor, g * x


@pytest.mark.parametrize("examples", [3, 4])  # as many as columns, too
@pytest.mark.parametrize("factors", [(), (4,), (1, 4), (2, 1)])
@pytest.mark.parametrize("place", [0, -1])
def test_gradients_of_examples_that_were_broadcast(examples, factors, place):
    x = torch.randn(examples, 2, 4, dtype=torch.float64)
    factor = torch.randn(examples, *factors, dtype=torch.float64).movedim(0, place).requires_grad_()
    result = torch.func.vmap(Scaled.apply, (0, place))(x, factor)
    (found,) = torch.autograd.grad(result.sin().sum(), factor)
    rows = factor.movedim(place, 0)
    (wanted,) = torch.autograd.grad(sum((x[i] * rows[i]).sin().sum() for i in range(examples)), factor)
    torch.testing.assert_close(found, wanted)


def test_a_ctx_with_other_saved_tensors():
    from rushlight._functorch.autograd_function import CtxWithSavedTensors

    class Wrapping(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, name):
            setattr(ctx, name, 1)
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            outer = CtxWithSavedTensors(CtxWithSavedTensors(ctx, (1, 2)), "other")
            outer.note = "on the ctx"
            assert outer.saved_tensors == "other" and ctx.note == "on the ctx"
            assert outer.needs_input_grad == ctx.needs_input_grad
            return g * 2, None

    x = torch.ones(2, requires_grad=True)
    Wrapping.apply(x, "free").sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="_pt_inner_ctx on ctx: .* name collision"):
        Wrapping.apply(x, "_pt_inner_ctx").sum().backward()
