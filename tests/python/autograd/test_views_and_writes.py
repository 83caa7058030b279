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


def _write(view):
    with pytest.raises(RuntimeError) as refusal:
        view.mul_(2)
    return str(refusal.value)


def test_refused_writes_say_how_the_view_came_about():
    base = torch.ones(2, requires_grad=True).clone()
    with torch.no_grad():
        view = base.view(2)
    text = _write(view)
    assert text.startswith("A view was created in no_grad mode and is being modified inplace with grad mode")
    assert "inside the no_grad block" in text
    with torch.inference_mode():
        view = base.view(2)
    text = _write(view)
    assert text.startswith(
        "A view was created in inference mode and is being modified inplace in normal mode"
    )
    assert "inside the inference_mode block" in text
    plain = torch.zeros(2)
    for mode, name in ((torch.no_grad, "no_grad"), (torch.inference_mode, "inference")):
        with mode():
            view = plain.view(2)
        view.requires_grad_()
        text = _write(view.view(2))
        assert f"is a view of a view which was created in {name} mode and is being modified" in text


def test_views_that_custom_functions_return_are_not_written():
    class View(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return grad

    base = torch.ones(2, requires_grad=True).clone()
    text = _write(View.apply(base))
    assert text.startswith("Output 0 of View is a view and is being modified inplace. This view was created")
    view = View.apply(base)
    base.mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified"):
        view.grad_fn  # noqa: B018
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        View.apply(torch.zeros(2)).add_(torch.ones(2, requires_grad=True))


def test_custom_functions_that_write_to_views_have_one_result():
    class Add(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x, x + 1

        @staticmethod
        def backward(ctx, first, second):
            return first + second

    x = torch.ones(2, requires_grad=True).clone()
    with pytest.raises(RuntimeError, match="cannot return more than one Tensor"):
        Add.apply(x[:])

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    with pytest.warns(UserWarning, match="not an input"):
        Wrong.apply(x)


def test_complex_views_of_real_tensors_are_written():
    x = torch.arange(8.0, dtype=torch.float64).reshape(2, 2, 2).requires_grad_()
    y = x.clone()
    torch.view_as_complex(y)[0].mul_(2j)
    torch.view_as_real(torch.view_as_complex(y)).mul_(3)
    y.sum().backward()
    expected = torch.full((2, 2, 2), 3.0, dtype=torch.float64)
    expected[0, :, 0], expected[0, :, 1] = 6, -6  # (a + bi) 2i 3 = -6b + 6ai
    torch.testing.assert_close(x.grad, expected)


def test_a_view_that_is_renewed_keeps_its_gradient_and_leaves_its_hooks():
    base = torch.tensor([1.0], requires_grad=True).clone()
    written, other = base[:], base[:]
    written.retain_grad()
    other.retain_grad()
    seen = []
    other.register_hook(lambda grad: seen.append("old"))
    written.mul_(2)
    other.grad_fn  # noqa: B018
    other.register_hook(lambda grad: seen.append(grad.item()))
    (written + other).sum().backward()
    assert seen == [1.0] and written.grad.tolist() == other.grad.tolist() == [1.0]


def test_inference_tensors_have_no_history():
    with torch.inference_mode():
        x = torch.ones(1, 2, 3, requires_grad=True)
        view = x.view(-1)
        assert view.is_inference() and not view.requires_grad and x.requires_grad
        assert x.resize_(1, 2).shape == (1, 2)
        target = torch.ones(3)
    outside = x.view(-1)
    assert outside.is_inference() and not outside.requires_grad and outside.is_leaf and not outside._is_view()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        torch.mul(torch.ones(3), 2, out=target)


@pytest.mark.parametrize(
    "become",
    [
        lambda t: t.set_(torch.full((3,), 5.0)),
        lambda t: t.set_(torch.full((3,), 5.0).untyped_storage(), 0, (3,)),
        lambda t: t.set_(),
    ],
)
def test_memory_set_anew_counts_as_a_write(become):
    saved = torch.full((3,), 2.0, requires_grad=True) * 1
    before, result = saved._version, (saved * saved).sum()
    with torch.no_grad():
        become(saved)
    assert saved._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_memory_set_anew_ends_what_a_leaf_accumulates():
    p = torch.nn.Parameter(torch.ones(4))
    for size in (3, 2):
        with torch.no_grad():
            p.set_(p[1:])
            p.grad = None
        torch.cat((p, p)).sum().backward()
        assert p.grad.tolist() == [2.0] * size
    before = p.clone()
    with torch.no_grad():
        p.set_(torch.ones(2))
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        torch.autograd.grad(before.sum(), p)
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        p.data = torch.ones(2).to_sparse()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("write", [lambda t: t.add_(2), lambda t: t.view(-1).mul_(3), lambda t: t.t_()])
def test_a_view_without_history_does_not_outlive_a_write_to_its_base(mode, write):
    base = torch.ones(1, 3, requires_grad=True).clone()
    with mode():
        view, later = base.view(-1), base[0]
    assert view.grad_fn is None and (view * 2).requires_grad
    write(base)
    with pytest.raises(RuntimeError, match="mode and its base or another view of its base has been modified"):
        _ = view.grad_fn
    with pytest.raises(RuntimeError, match="ambiguous and error-prone"):
        _ = later * 2
    assert view.is_leaf and view.requires_grad
    assert repr(view).endswith("grad_fn=<Invalid>)")
    with mode():
        again = base.view(-1)  # it shows what was written
        assert (view * 2).tolist() == (again * 2).tolist()
    assert again.grad_fn is None


def test_a_view_of_a_leaf_without_history_shows_writes_under_no_grad():
    weight = torch.nn.Parameter(torch.ones(3))
    with torch.no_grad():
        view = weight[:]
        view *= 2
    assert repr(view) == "tensor([2., 2., 2.], grad_fn=<Invalid>)"
    assert repr(weight.detach()) == "tensor([2., 2., 2.])"
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        (view * weight).sum().backward()
