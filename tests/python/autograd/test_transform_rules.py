"""Operators of programs that say themselves what each function transform makes of them."""

import pytest

import rushlight as torch
from rushlight._functorch.utils import enable_single_level_autograd_function
from rushlight._higher_order_ops.operator import HigherOrderOperator
from rushlight.func import grad, vmap

functorch = torch._C._functorch


class SumOf(HigherOrderOperator):
    def __call__(self, x, dim):
        return super().__call__(x, dim)


sum_of = SumOf("sum_of")


@sum_of.py_impl(functorch.TransformType.Vmap)
def batched(interpreter, x, dim):
    if not functorch.is_batchedtensor(x):
        with interpreter.lower():
            return sum_of(x, dim)
    assert interpreter.randomness() == "error" and interpreter.batch_size() in (2, 3)
    value, place = functorch.get_unwrapped(x), functorch.maybe_get_bdim(x)
    with interpreter.lower():
        result = sum_of(value.movedim(place, 0), dim + 1)
    return functorch._add_batch_dim(result, 0, interpreter.level())


@sum_of.py_impl(functorch.TransformType.Grad)
def recorded(interpreter, x, dim):
    level = interpreter.level()

    class AtLevel(torch.autograd.function._SingleLevelFunction):
        @staticmethod
        def forward(ctx, x, dim):
            ctx.shape, ctx.dim = x.shape, dim
            with torch.enable_grad(), interpreter.lower():
                result = sum_of(functorch._unwrap_for_grad(x, level), dim)
            return functorch._wrap_for_grad(result, level)

        @staticmethod
        def backward(ctx, g):
            return g.unsqueeze(ctx.dim).expand(ctx.shape), None

    with enable_single_level_autograd_function():
        return AtLevel.apply(x, dim)


@sum_of.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)
def computed(x, dim):
    return x.sum(dim)


def test_rules_of_one_transform():
    x = torch.randn(2, 3, 4)
    assert torch.equal(vmap(sum_of, (0, None))(x, 0), x.sum(1))
    assert torch.equal(vmap(sum_of, (1, None))(x, 0), x.sum(0))
    assert torch.equal(grad(sum_of)(torch.randn(3), 0), torch.ones(3))


def test_rules_of_transforms_together():
    x = torch.randn(2, 3, 4)
    torch.testing.assert_close(vmap(vmap(sum_of, (0, None)), (0, None))(x, 0), x.sum(2))
    assert torch.equal(vmap(grad(sum_of), (0, None))(x[0], 0), torch.ones(3, 4))
    slopes = grad(lambda x: grad(lambda x: sum_of(x.sin(), 0))(x).sum())(x[0, 0])
    torch.testing.assert_close(slopes, -x[0, 0].sin())


def test_a_function_of_one_level_must_be_meant():
    class Doubled(torch.autograd.function._SingleLevelFunction):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(2, requires_grad=True)
    Doubled.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="records at one level of function transforms alone"):
        grad(lambda x: Doubled.apply(x).sum())(x)


def test_recording_is_off_where_either_side_says_so():
    x = torch.randn(3, requires_grad=True)
    with torch.no_grad():
        assert not grad(sum_of)(x, 0).requires_grad

    def shifted(x):
        with torch.no_grad():
            shift = sum_of(x**2, 0)
        return sum_of(x**2, 0) - shift

    torch.testing.assert_close(grad(shifted)(x), 2 * x)


def test_an_operator_without_a_rule_says_what_to_register():
    class Bare(HigherOrderOperator):
        def __call__(self, x):
            return super().__call__(x)

    bare = Bare("bare")
    bare.py_impl(torch._C.DispatchKey.CPU)(lambda x: x * 2)
    assert bare(torch.ones(1)).tolist() == [2]
    with pytest.raises(NotImplementedError, match="bare has no implementation .* py_impl"):
        vmap(bare)(torch.ones(2, 1))
    with pytest.raises(AssertionError, match="already has an implementation for TransformType.Vmap"):
        sum_of.py_impl(functorch.TransformType.Vmap)(batched)


def test_the_level_of_a_tensor():
    escaped = []

    def f(x):
        escaped.append(x.sin())
        assert functorch.dlevel(escaped[-1]) == 1
        return escaped[-1]

    x = torch.tensor(1.0)
    grad(f)(x)
    assert functorch.dlevel(escaped[0]) == -1
    assert functorch.dlevel(escaped[0].sum()) == functorch.dlevel(x) == 0


def test_tensors_that_a_function_takes_by_keyword_alone():
    class Added(torch.autograd.Function):
        @staticmethod
        def forward(x, *, y):
            return x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        vmap(Added.apply)(torch.ones(3), y=torch.ones(3))
