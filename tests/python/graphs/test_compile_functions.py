"""Steps of autograd that a program defines in compiled programs: `autograd.Function`, operators with a
derivative."""

import pytest
from compile_checks import graphs, no_measuring  # noqa: F401 (a fixture)

import rushlight as torch

pytestmark = pytest.mark.usefixtures("no_measuring")


class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, exponent):
        ctx.save_for_backward(x)
        ctx.exponent = exponent
        return x**exponent

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 10 * ctx.exponent * x ** (ctx.exponent - 1), None  # ten: no other backward gives it


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first, second):
        return (0 if first is None else first * 5) + (0 if second is None else second * 7)


def gradients(function, *shapes, calls=3):
    """Results and gradients of some calls, as numbers."""
    torch.manual_seed(0)
    found = []
    for _ in range(calls):
        inputs = [torch.randn(shape).requires_grad_() for shape in shapes]
        result = function(*inputs)
        result.sum().backward()
        found += [result.detach(), *(x.grad for x in inputs)]
    return found


def check(function, *shapes, graph=1, **options):
    torch._dynamo.reset()
    fast = torch.compile(function, **options)
    torch.testing.assert_close(gradients(fast, *shapes), gradients(function, *shapes), rtol=1e-6, atol=1e-6)
    assert graphs(fast) == graph
    return fast


def test_functions_are_part_of_graphs():
    fast = check(lambda x: Power.apply(x.sin(), 3).cos(), (4,), fullgraph=True)
    assert fast(torch.ones(4, requires_grad=True)).grad_fn.name() == "CompiledFunctionBackward"
    check(lambda x, w: Power.apply(x, 2) @ w + Power.apply(w, 3).sum(), (3, 4), (4, 2), fullgraph=True)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_other_back_ends_meet_a_function_as_one_call(backend):
    check(lambda x: Power.apply(x.sin(), 3).cos() + Power.apply(x, 2), (4,), backend=backend)


def test_mode_lite_calls_functions():
    check(lambda x: Power.apply(x.sin(), 3).cos(), (4,), mode="lite")


def test_gradients_of_gradients():
    def second(function):
        x = torch.linspace(0, 1, 4).requires_grad_()
        (first,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0]

    def f(x):
        return Power.apply(x.sin(), 3)

    torch.testing.assert_close(second(torch.compile(f, fullgraph=True)), second(f))


@pytest.mark.parametrize("chosen", [(0,), (1,), (0, 1)])
def test_gradients_for_some_results(chosen):
    def used(function):
        x = torch.ones(3, requires_grad=True)
        results = function(x)
        sum(results[i].sum() for i in chosen).backward()
        return x.grad

    def f(x):
        return Both.apply(x.sin())

    torch.testing.assert_close(used(torch.compile(f, fullgraph=True)), used(f))


def test_what_backward_reads_is_checked():
    factor = {"is": 1.0}

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * factor["is"]

    fast = torch.compile(lambda x: Scaled.apply(x) + 1, fullgraph=True)
    for value in (1.0, 3.0, 3.0, 5.0):
        factor["is"] = value
        x = torch.ones(2, requires_grad=True)
        fast(x).sum().backward()
        assert x.grad.tolist() == [value, value]
    assert graphs(fast) == 3


def test_effects_of_backward_happen_in_each_pass():
    log = []

    class Logged(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            log.append(gradient.sum().item())
            return gradient * (2 if gradient.sum() > 0 else 3)

    check(lambda x: Logged.apply(x.sin()) * 4, (3,), fullgraph=True)
    assert log == [12.0] * 6  # three of the graph, three of the program


def test_effects_of_forward_are_no_graph():
    log = []

    class Logged(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            log.append(1)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    check(lambda x: Logged.apply(x), (3,), graph=0)
    assert len(log) == 6


def test_results_that_are_inputs_or_have_no_gradient():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 7

    class Sorted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            order = x.argsort()
            ctx.mark_non_differentiable(order)
            ctx.save_for_backward(order)
            return x[order], order

        @staticmethod
        def backward(ctx, gradient, _):
            return torch.zeros_like(gradient).index_copy(0, ctx.saved_tensors[0], gradient)

    check(lambda x: Same.apply(x.sin()).cos(), (4,), fullgraph=True)
    check(lambda x: Same.apply(x), (4,), fullgraph=True)

    def ordered(x):
        values, order = Sorted.apply(x * 2)
        return values * order

    check(ordered, (5,), fullgraph=True)


def test_random_numbers_of_a_function():
    class Dropped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mask = (torch.rand_like(x) > 0.5).to(x.dtype)
            ctx.save_for_backward(mask)
            return x * mask

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0]

    check(lambda x: Dropped.apply(x * 2).sin(), (16,), fullgraph=True)


def test_functions_in_graphs_for_many_sizes():
    fast = torch.compile(lambda x: Power.apply(x.sin(), 3).sum(0), fullgraph=True)
    for n in (5, 7, 11, 13):
        x = torch.ones(n, 2, requires_grad=True)
        fast(x).sum().backward()
        expected = 30 * torch.sin(x) ** 2 * torch.cos(x)
        torch.testing.assert_close(x.grad, expected.detach())
    assert graphs(fast) == 2


def test_no_step_without_a_gradient():
    fast = torch.compile(lambda x: Power.apply(x, 2) + 1, fullgraph=True)
    with torch.no_grad():
        assert fast(torch.full((2,), 3.0, requires_grad=True)).tolist() == [10, 10]
    assert not fast(torch.ones(2)).requires_grad


# --- operators with a derivative ----------------------------------------------------------------------


def test_custom_operators_record_their_derivative():
    @torch.library.custom_op("compiled_functions::scaled_sin", mutates_args=())
    def scaled_sin(x: torch.Tensor, scale: float) -> torch.Tensor:
        return torch.from_numpy(x.detach().numpy()).sin() * scale

    scaled_sin.register_fake(lambda x, scale: torch.empty_like(x))

    def remember(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0].cos() * ctx.scale * 10, None

    scaled_sin.register_autograd(backward, setup_context=remember)
    fast = check(lambda x: (scaled_sin(x * 2, 3.0) + 1).relu() * 2, (8,), fullgraph=True)
    x = torch.ones(8, requires_grad=True)
    assert fast(x).grad_fn.name() == "CompiledFunctionBackward"


def test_custom_operators_of_lists():
    @torch.library.custom_op("compiled_functions::moved", mutates_args=())
    def moved(x: torch.Tensor, ys: list[torch.Tensor], n: int = 3) -> tuple[torch.Tensor, list[torch.Tensor]]:
        return x * n, [y + n for y in ys]

    @moved.register_fake
    def _(x, ys, n=3):
        return torch.empty_like(x), [torch.empty_like(y) for y in ys]

    def remember(ctx, inputs, output):
        ctx.n = inputs[2]

    moved.register_autograd(lambda ctx, g, gs: (g * ctx.n, [h * 2 for h in gs], None), setup_context=remember)

    def f(x, y):
        first, (_, second) = moved(x * 2, [y, y.sin()], 4)
        return first + second

    check(f, (3,), (3,), fullgraph=True)


def test_custom_operators_write_to_arguments():
    @torch.library.custom_op("compiled_functions::average_", mutates_args=("state",))
    def average_(x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        state.mul_(0.5).add_(x.mean(0), alpha=0.5)
        return state + 1

    average_.register_fake(lambda x, state: torch.empty_like(state))

    def run(function):
        torch.manual_seed(0)
        state, found = torch.zeros(2, 3), []
        for _ in range(3):
            x = torch.randn(4, 3, requires_grad=True)
            result = function(x, state)
            result.sum().backward()
            found += [result.detach(), x.grad, state.clone()]
        return [*found, torch.tensor(state._version)]

    def f(x, state):
        y = average_((x * 2).detach(), state[0])
        return x * y + state[0] * 3

    fast = torch.compile(f, fullgraph=True)
    torch.testing.assert_close(run(fast), run(f))
    assert graphs(fast) == 1
