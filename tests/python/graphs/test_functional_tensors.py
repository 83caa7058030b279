"""PyTorch's functional tensors: within their modes a graph has no writes, and tensors are as written."""

import pytest

import rushlight as torch
from rushlight._higher_order_ops.operator import HigherOrderOperator
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight._subclasses.functional_tensor import (
    FunctionalTensor,
    FunctionalTensorMode,
    PythonFunctionalizeAPI,
    disable_functional_mode,
    dispatch_functionalize,
    mb_unwrap_functional_tensor,
)
from rushlight.fx.experimental.proxy_tensor import make_fx


def targets(module):
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


def program(x):
    y = x @ x
    y = y + x.t()
    y.mul_(5)
    return y.view(-1)


def in_mode(x, **options):
    with FunctionalTensorMode(**options):
        y = program(FunctionalTensor.to_functional(x))
        return torch._from_functional_tensor(y.elem)


@pytest.mark.parametrize("pre_dispatch", [False, True])
def test_the_mode_takes_writes_out_of_graphs(pre_dispatch):
    x = torch.rand(2, 2)
    module = make_fx(lambda x: in_mode(x, pre_dispatch=pre_dispatch), pre_dispatch=pre_dispatch)(x)
    product = "aten.matmul.default" if pre_dispatch else "aten.mm.default"
    assert targets(module) == [
        product,
        "aten.t.default",
        "aten.add.Tensor",
        "aten.mul.Tensor",
        "aten.view.default",
    ]
    assert torch.equal(module(x), program(x))


def test_the_value_of_a_tensor_stays_as_it_was_given():
    x = torch.zeros(3)
    with FunctionalTensorMode():
        y = FunctionalTensor.to_functional(x)
        assert FunctionalTensor.to_functional(y) is y
        y.view(3)[1:].add_(1)
        assert isinstance(y, FunctionalTensor) and not isinstance(x, FunctionalTensor)
    assert x.tolist() == [0, 0, 0] and y.tolist() == [0, 1, 1]
    assert mb_unwrap_functional_tensor(y).tolist() == [0, 1, 1] and mb_unwrap_functional_tensor(x) is x
    with pytest.raises(RuntimeError, match="FunctionalTensorMode"):
        FunctionalTensor.to_functional(x)


def test_fake_tensors_stay_fake():
    with FakeTensorMode() as fake:
        x = fake.from_tensor(torch.zeros(2))
        with FunctionalTensorMode():
            y = FunctionalTensor.to_functional(x)
            y.add_(1)
        assert isinstance(y, FakeTensor) and isinstance(torch._from_functional_tensor(y), FakeTensor)


@pytest.mark.parametrize("reapply_views", [False, True])
def test_functions_that_start_and_end_it(reapply_views):
    def function(x):
        held = torch._to_functional_tensor(x)
        torch._enable_functionalization(reapply_views=reapply_views)
        try:
            held.view(-1).add_(1)
            y = held * 2
        finally:
            torch._disable_functionalization()
        assert torch._is_functional_tensor(held) and not torch._is_functional_tensor(x)
        torch._sync(y)
        return torch._from_functional_tensor(y), torch._from_functional_tensor(held)

    x = torch.zeros(2, 2)
    module = make_fx(function)(x)
    assert ("aten.view.default" if reapply_views else "aten.view_copy.default") in targets(module)
    assert not any(target.partition(".")[2].partition(".")[0].endswith("_") for target in targets(module))
    for result in function(x), module(x):
        assert [t.unique().tolist() for t in result] == [[2], [1]]
    assert not x.any()
    for check in torch._sync, torch._from_functional_tensor:
        with pytest.raises(RuntimeError, match="no functional tensor"):
            check(x)


def test_gradients_pass():
    x = torch.ones(2, requires_grad=True)
    with FunctionalTensorMode():
        y = FunctionalTensor.to_functional(x)
        z = y.clone()
        z.mul_(3)
        (grad,) = torch.autograd.grad(z.sum(), y)
    assert grad.tolist() == [3, 3]


def test_functions_without_mutation():
    x = torch.zeros(2)
    pure = dispatch_functionalize(lambda x: {"sum": x.add_(1).sum()})
    assert pure(x)["sum"].item() == 2 and x.tolist() == [0, 0]
    assert "aten.add_.Tensor" not in targets(make_fx(lambda x: pure(x)["sum"])(x))


def test_operators_that_take_functions_have_rules_for_it():
    class Apply(HigherOrderOperator):
        def __call__(self, f, x):
            return super().__call__(f, x)

    apply, seen = Apply("apply_in_functional_mode"), []

    @apply.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)
    def run(f, x):
        return f(x)

    @apply.py_functionalize_impl
    def pure(ctx, f, x):
        seen.append(type(ctx))
        value = ctx.unwrap_tensors(x)
        with ctx.redispatch_to_next():
            return ctx.wrap_tensors(apply(ctx.functionalize(f), value))

    x = torch.zeros(2)
    with FunctionalTensorMode():
        y = apply(lambda x: x.add_(1), FunctionalTensor.to_functional(x))
        y.add_(1)
    assert seen == [PythonFunctionalizeAPI] and x.tolist() == [0, 0] and y.tolist() == [2, 2]
    assert mb_unwrap_functional_tensor(y).tolist() == [2, 2]


def test_the_mode_can_be_left_for_a_while():
    seen = []

    def function(x):
        with FunctionalTensorMode():
            with disable_functional_mode():
                seen.append(torch._is_functional_tensor(x + 1))
            seen.append(torch._is_functional_tensor(x + 1))
        return x

    function(torch.ones(1))
    assert seen == [False, True]
