"""Names that few programs use: grouped and scaled products, streams, loops, saved tensors that change."""

import pytest

import rushlight as torch
from rushlight.nn.functional import ScalingType, grouped_mm, scaled_grouped_mm, scaled_mm


def test_grouped_products():
    offs = torch.tensor([3, 3, 8], dtype=torch.int32)
    rows, batch = torch.randn(8, 4, requires_grad=True), torch.randn(3, 4, 5, requires_grad=True)
    expected = torch.cat([rows[:3] @ batch[0], rows[3:8] @ batch[2]])
    torch.testing.assert_close(grouped_mm(rows, batch, offs=offs), expected)
    grads = torch.autograd.grad(grouped_mm(rows, batch, offs=offs).sum(), [rows, batch])
    assert grads[1][1].abs().sum() == 0 and grads[1][2].abs().sum() > 0

    columns = torch.randn(4, 8)
    batch = torch.randn(3, 5, 4)
    expected = torch.cat([batch[0] @ columns[:, :3], batch[2] @ columns[:, 3:]], 1)
    torch.testing.assert_close(grouped_mm(batch, columns, offs=offs), expected)

    left, right = torch.randn(4, 8), torch.randn(8, 5)
    expected = torch.stack([left[:, i:j] @ right[i:j] for i, j in ((0, 3), (3, 3), (3, 8))])
    torch.testing.assert_close(grouped_mm(left, right, offs=offs), expected)
    one, two = torch.randn(3, 4, 5), torch.randn(3, 5, 2)
    assert grouped_mm(one, two, out_dtype=torch.bfloat16).dtype == torch.bfloat16
    for bad in (
        lambda: grouped_mm(left, right),
        lambda: grouped_mm(one, two, offs=offs),
        lambda: grouped_mm(left, right, offs=offs.long()),
        lambda: grouped_mm(left, right, offs=torch.tensor([5, 3], dtype=torch.int32)),
        lambda: grouped_mm(left, right, offs=torch.tensor([99], dtype=torch.int32)),
        lambda: grouped_mm(left, right.mT, offs=offs),
    ):
        with pytest.raises(RuntimeError):
            bad()


@pytest.mark.parametrize("recipe", [ScalingType.TensorWise, ScalingType.RowWise, ScalingType.BlockWise1x128])
def test_scaled_products(recipe):
    a, b = torch.randn(6, 200), torch.randn(200, 5)
    shapes = {
        ScalingType.TensorWise: ((1,), (1,)),
        ScalingType.RowWise: ((6, 1), (1, 5)),
        ScalingType.BlockWise1x128: ((6, 2), (2, 5)),
    }[recipe]
    scale_a, scale_b = (torch.rand(shape) + 0.5 for shape in shapes)
    small_a, small_b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    wide_a = scale_a.repeat_interleave(128, -1)[:, :200] if recipe is ScalingType.BlockWise1x128 else scale_a
    wide_b = scale_b.repeat_interleave(128, 0)[:200] if recipe is ScalingType.BlockWise1x128 else scale_b
    expected = (small_a.float() * wide_a) @ (small_b.float() * wide_b) + 1
    result = scaled_mm(
        small_a, small_b, scale_a, recipe, scale_b, recipe, bias=torch.ones(5), output_dtype=torch.float32
    )
    torch.testing.assert_close(result, expected)
    offs = torch.tensor([2, 6], dtype=torch.int32)
    if recipe is not ScalingType.TensorWise:
        return
    stack = torch.stack([small_b.float(), small_b.float()]).to(torch.float8_e4m3fn)
    grouped = scaled_grouped_mm(
        small_a, stack, scale_a, recipe, scale_b, recipe, offs=offs, output_dtype=torch.float32
    )
    torch.testing.assert_close(grouped, expected - 1)


def test_streams_and_events():
    stream = torch.Stream("cpu")
    begin, end = torch.Event(enable_timing=True), torch.Event(enable_timing=True)
    with stream:
        begin.record(stream)
        torch.ones(100).exp()
        stream.record_event(end)
    stream.synchronize()
    assert stream.query() and end.query() and begin.elapsed_time(end) >= 0
    assert stream == torch.Stream("cpu") and stream.device == torch.device("cpu")
    with pytest.raises(ValueError, match="enable_timing"):
        torch.Event().elapsed_time(end)
    with pytest.raises(RuntimeError, match="not linked with support"):
        torch.Stream("cuda")


def test_while_loop():
    def body(i, x):
        return i + 1, x * 2

    i, x = torch.while_loop(lambda i, x: i < 5, body, (torch.tensor(0), torch.ones(2)))
    assert i == 5 and x.tolist() == [32.0, 32.0]
    with pytest.raises(RuntimeError, match="must return what it takes"):
        torch.while_loop(lambda x: True, lambda x: torch.ones(3), (torch.ones(2),))
    with pytest.raises(RuntimeError, match="must return a bool"):
        torch.while_loop(lambda x: 1, lambda x: x, (torch.ones(2),))


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
    with pytest.raises(RuntimeError, match="outside"):
        late.sum().backward()


def test_boxed_gradients():
    class Boxed(torch.autograd.Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, a, b):
            return a * 2, b * 3

        @staticmethod
        def backward(ctx, grads):
            assert isinstance(grads, list)
            second, first = grads.pop(), grads.pop()
            return first * 2, second * 3

    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    sum(out.sum() for out in Boxed.apply(a, b)).backward()
    assert a.grad.tolist() == [2, 2] and b.grad.tolist() == [3, 3]


def test_an_optimizer_steps_on_other_tensors():
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([p], lr=0.1)
    p.grad = torch.ones(2)
    optimizer.step()
    before, state = p.detach().clone(), optimizer.state_dict()
    other = torch.nn.Parameter(torch.full((2,), 5.0))
    other.grad = torch.ones(2)
    copies = {
        "state": {0: {k: v.clone() for k, v in state["state"][0].items()}},
        "param_groups": [{**state["param_groups"][0], "lr": 1.0}],
    }
    with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"p": other}, copies):
        optimizer.step()
    assert torch.equal(p, before) and optimizer.param_groups[0]["lr"] == 0.1
    assert optimizer.state[p]["step"] == 1 and copies["state"][0]["step"] == 2
    torch.testing.assert_close(other.detach(), torch.full((2,), 4.0))
    with pytest.raises(ValueError, match="parameters"):
        with torch.optim.swap_in_optimizer_params_and_state(optimizer, {}, copies):
            pass


def test_names_of_the_compiler_and_of_quantizers():
    import rushlight._dynamo as dynamo

    model = torch.nn.Linear(2, 2)
    assert torch._dynamo.disable(model) is model and isinstance(torch.compile(model), dynamo.OptimizedModule)
    with dynamo.config.patch(verbose=True):
        assert dynamo.config.verbose
    assert not dynamo.config.verbose
    with pytest.raises(AttributeError):
        dynamo.config.patch(colour=1)
    add = torch.nn.quantized.FloatFunctional()
    add.activation_post_process.register_forward_hook(lambda module, args, output: output * 10)
    assert add.add_relu(torch.tensor([-3.0, 1.0]), torch.ones(2)).tolist() == [0.0, 20.0]
    with pytest.raises(RuntimeError, match="not registered"):
        torch.classes.some.Thing  # noqa: B018
    assert torch.thread_safe_generator() is None
    assert issubclass(torch.AcceleratorError, RuntimeError)


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


def test_layouts_of_gradients():
    def same_layout(**options):
        p = torch.ones(2, 3, 4).permute(2, 0, 1).requires_grad_()
        loss = (p.contiguous() * torch.ones(4, 2, 3)).exp().sum()
        if options:
            with torch.autograd.enforce_grad_layout_policy(**options):
                loss.backward()
        else:
            loss.backward()
        return p.grad.stride() == p.stride()

    assert same_layout() and same_layout(enable=True)
    assert not same_layout(enable=False)
    assert torch._C._is_grad_layout_enforcement_enabled()
