"""Tensors that the backward pass needs: hooks, changes, and when they are given back."""

import pytest

import rushlight as torch


def test_saved_tensors_may_be_changed_when_asked_for():
    x = torch.arange(1.0, 4.0, requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = y.sin()  # saves y
        w = y * y
        y.mul_(0)
        y[0] = 7
        torch.add(x.detach(), 1, out=y.detach())
        (z + w).sum().backward()
    x2 = x.detach().clone().requires_grad_()
    (x2.sin() + x2 * x2).sum().backward()
    torch.testing.assert_close(x.grad, x2.grad)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        late = x.clone().exp().sin()
    with pytest.raises(AssertionError, match="outside"):
        late.sum().backward()


def test_saved_tensors_may_be_taken_away():
    class Square(torch.autograd.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with pytest.raises(RuntimeError, match="second time"):
                ctx.saved_tensors  # noqa: B018
            return 2 * x * grad

    x = torch.ones(2, requires_grad=True)
    y = Square.apply(x).sum()
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


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


def test_one_saved_tensor_has_hooks_of_its_own():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    saved = y.grad_fn._raw_saved_result
    assert type(saved) is torch.autograd.SavedTensor
    saved.register_hooks(lambda t: t * 2, lambda t: t / 2)
    torch.testing.assert_close(y.grad_fn._saved_result, y)
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    with pytest.raises(RuntimeError, match="already been set"):
        saved.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        saved.register_hooks(1, 1)
    y.sum().backward()
    torch.testing.assert_close(x.grad, x.detach().exp())
    with pytest.raises(RuntimeError, match="after it has been freed"):
        saved.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        torch.autograd.SavedTensor()


def test_custom_functions_show_their_saved_tensors():
    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = torch.tensor([3.0], requires_grad=True)
    y = Keep.apply(x)
    first, nothing = y.grad_fn._raw_saved_tensors
    with pytest.raises(RuntimeError, match="None is forbidden"):
        nothing.register_hooks(lambda t: t, lambda t: t)
    first.register_hooks(lambda t: t, lambda t: t + 1)
    y.backward()
    assert x.grad.tolist() == [4]
    with pytest.raises(RuntimeError, match="freed"):
        y.grad_fn._raw_saved_tensors  # noqa: B018


def test_a_saved_tensor_that_was_detached_in_place_is_refused():
    x = torch.tensor(1.0, requires_grad=True).clone()
    y = x.sin()
    x.detach_()
    with pytest.raises(RuntimeError, match="detached in-place"):
        y.backward()
    w = torch.tensor(2.0, requires_grad=True)
    (x * w).backward()  # saved after it was detached
    assert w.grad.item() == 1


def test_changes_that_hooks_make_to_the_stack_end_with_the_pass():
    extra = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)

    def leaves(t):
        extra.__exit__()
        return t

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, leaves):
        x = torch.ones(2, requires_grad=True)
        x.sin().sum().backward()
    with pytest.raises(RuntimeError, match="no saved tensor hooks"):
        extra.__exit__()


def test_contexts_of_changes_do_not_nest_and_count_copies():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as memory:
        y = x.clone()
        first, second = y**2, y**2
        y.sin_()
        assert len(memory.cloned) == 1  # both saved the same tensor
        del first, second
        assert len(memory.cloned) == 0
        with pytest.raises(RuntimeError, match="cannot be nested"):
            torch.autograd.graph.allow_mutation_on_saved_tensors().__enter__()


@pytest.mark.parametrize(
    "view",
    [
        lambda t: torch.as_strided_copy(t, (2, 2), (1, 1)),
        lambda t: t.clone().fill_diagonal_(2.0),
        lambda t: t.as_strided((2, 3), (1, 2), 1),
        lambda t: t.t().reshape(-1)[1:],
    ],
)
def test_hooks_do_not_see_the_layouts_of_views(view):
    x = torch.arange(12.0).view(3, 4).requires_grad_()
    (expected,) = torch.autograd.grad((view(x) * 2).square().sum(), x)
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t * 1, lambda t: t):
        result = (view(x) * 2).square().sum()
    assert all(t.device.type == "cpu" for t in seen)
    assert torch.equal(torch.autograd.grad(result, x)[0], expected)
    with torch.autograd.graph.save_on_cpu():
        result = (view(x) * 2).square().sum()
    assert torch.equal(torch.autograd.grad(result, x)[0], expected)
