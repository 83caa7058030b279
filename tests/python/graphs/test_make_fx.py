"""make_fx: graphs of the operators that really run, through autograd and the function transforms."""

import pytest

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from rushlight.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

OPERATORS = torch.ops.aten


def targets(module):
    return [n.target for n in module.graph.nodes if n.op == "call_function"]


def check(f, *args, **options):
    """The trace computes what the program does, on these arguments and on others."""
    module = make_fx(f, **options)(*args)
    module.graph.lint()
    others = [torch.randn_like(a) if isinstance(a, torch.Tensor) else a for a in args]
    for inputs in (args, others):
        copies = [a.clone() if isinstance(a, torch.Tensor) else a for a in inputs]
        torch.testing.assert_close(module(*copies), f(*inputs))
    return module


def test_code_names_operators():
    def program(x, y):
        return torch.sin(x) + y.sum() * 2

    module = check(program, torch.randn(3), torch.randn(3))
    assert "def forward(self, x_1, y_1):" in module.code
    assert "sin = torch.ops.aten.sin.default(x_1);  x_1 = None" in module.code
    assert targets(module)[-1] is OPERATORS.add.Tensor
    shapes = {n.name: tuple(n.meta["val"].shape) for n in module.graph.nodes if n.op == "call_function"}
    assert shapes == {"sin": (3,), "sum_1": (), "mul": (), "add": (3,)}


def test_gradients_are_part_of_the_graph():
    def gradient(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad((x.sin() * x).sum(), x)[0]

    module = check(gradient, torch.randn(3))
    assert OPERATORS.cos.default in targets(module)
    assert OPERATORS.cos.default in targets(check(torch.func.grad(lambda x: x.sin().sum()), torch.randn(3)))


def test_transforms_are_gone_from_the_graph():
    check(torch.vmap(lambda x: x.sum() * 2), torch.randn(2, 3))
    check(torch.func.jacrev(lambda x: x.exp() * x), torch.randn(3))
    check(lambda x, t: torch.func.jvp(torch.tanh, (x,), (t,)), torch.randn(3), torch.randn(3))
    check(torch.vmap(torch.func.grad(lambda x: (x @ x).sin())), torch.randn(4, 3))


def test_modules_and_training_steps():
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)
    ).eval()
    x = torch.randn(2, 1, 4, 4)
    module = check(model, x)
    assert sorted(dict(module.named_parameters())) == sorted(
        f"_param_constant{i}" for i in range(len(dict(module.named_parameters())))
    )

    def loss_gradients(parameters, x, y):
        def loss(parameters):
            return nn.functional.cross_entropy(torch.func.functional_call(model, parameters, (x,)), y)

        return torch.func.grad(loss)(parameters)

    parameters = {name: p.detach() for name, p in model.named_parameters()}
    step = make_fx(loss_gradients)(parameters, x, torch.tensor([0, 2]))
    expected = loss_gradients(parameters, x, torch.tensor([1, 1]))
    torch.testing.assert_close(step(parameters, x, torch.tensor([1, 1])), expected)


def test_nested_inputs_and_outputs():
    def program(x):
        return {"a": x[0].cos(), "b": [x[1]["k"] + 1, 5]}

    module = make_fx(program)((torch.ones(2), {"k": torch.ones(3)}))
    out = module((torch.zeros(2), {"k": torch.zeros(3)}))
    assert out["a"].tolist() == [1, 1] and out["b"][0].tolist() == [1, 1, 1] and out["b"][1] == 5


def test_writes_views_constants_and_lists():
    check(lambda x: x.clone().add_(1).mul(2), torch.randn(3))
    check(lambda x: x.view(3, 1).expand(3, 2)[0], torch.randn(3))
    check(lambda x: torch.zeros(3) + x + torch.tensor([1.0, 2, 3]), torch.randn(3))
    check(lambda x: x.split(1)[0] + torch.max(x, 0)[0], torch.randn(3))
    check(lambda *a: torch.cat([a[0], a[1]]), torch.randn(2), torch.randn(3))
    check(lambda x, n: x * n, torch.randn(2), 3)

    def slices(x):
        y = x.clone()
        y[1:] = y[:-1] * 2
        return y

    check(slices, torch.randn(4))


def test_a_graph_that_depends_on_values_is_refused():
    for program in (
        lambda x: 1 if x.sum() > 0 else x,
        lambda x: x * x.sum().item(),
        lambda x: float(x.sum()),
    ):
        with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
            make_fx(program)(torch.ones(3))
    for program in (lambda x: 1 if x.sum() > 0 else x, lambda x: float(x.sum())):
        for mode in ("fake", "symbolic"):
            with pytest.raises(GuardOnDataDependentSymNode, match="Could not guard on data-dependent"):
                make_fx(program, tracing_mode=mode)(torch.ones(3))
    assert get_proxy_mode() is None


def test_decompositions():
    def silu(x):
        return x * torch.sigmoid(x)

    module = check(
        lambda x: nn.functional.silu(x) + 1,
        torch.randn(3),
        decomposition_table={OPERATORS.silu.default: silu},
    )
    assert targets(module) == [OPERATORS.sigmoid.default, OPERATORS.mul.Tensor, OPERATORS.add.Tensor]


def test_fake_tracing_computes_nothing():
    module = make_fx(lambda x: torch.relu(x @ x), tracing_mode="fake")(torch.randn(3, 3))
    x = torch.randn(3, 3)
    torch.testing.assert_close(module(x), torch.relu(x @ x))
    assert all(type(n.meta["val"]).__name__ == "FakeTensor" for n in module.graph.nodes if n.op != "output")


def test_traces_can_be_traced_and_interpreted():
    module = make_fx(lambda x: torch.softmax(x, 0).log())(torch.randn(3))
    x = torch.randn(3)
    torch.testing.assert_close(fx.Interpreter(module).run(x), module(x))
    again = make_fx(module)(x)
    assert targets(again) == targets(module)


def test_the_mode_is_known_to_what_runs_in_it():
    seen = []

    def program(x):
        seen.append(get_proxy_mode())
        return x + 1

    make_fx(program)(torch.ones(1))
    assert seen[0] is not None and get_proxy_mode() is None


def test_constants_that_a_program_writes_to():
    def program(x):
        y = torch.tensor(3)
        y.add_(1)
        z = torch.tensor([1.0, 2.0])
        z[0] = 5
        return x + y + z

    x = torch.ones(2)
    graph = make_fx(program)(x)
    for _ in range(2):  # the graph's own constants stay as they are
        torch.testing.assert_close(graph(x), program(x))


def _sizes_of(module):
    return [n for n in module.graph.nodes if n.target is torch.ops.aten.sym_size.int]


SIZED = {
    "lists": (lambda x, y: torch.cat([x, y]).sin().view(-1), ((3, 4), (5, 4)), ((7, 2), (2, 2)), 0),
    "products": (lambda x: x.view(x.shape[0] * x.shape[1]) * x.shape[0], ((3, 4),), ((7, 2),), 2),
    "halves": (
        lambda x: x.new_ones(x.shape[1] // 2) + x[:, : x.shape[1] // 2].sum(0),
        ((3, 8),),
        ((2, 11),),
        1,
    ),
    "layers": (lambda x, w: torch.nn.functional.linear(x, w).mean(), ((3, 4), (2, 4)), ((5, 6), (3, 6)), 0),
    "equal sizes": (lambda x: x.tril() @ x.new_ones(x.shape[1], 2), ((4, 4),), ((6, 6),), 1),
}


@pytest.mark.parametrize("name", SIZED)
def test_symbolic_graphs_serve_other_sizes(name):
    function, example, others, sizes = SIZED[name]
    module = make_fx(function, tracing_mode="symbolic")(*map(torch.ones, example))
    assert len(_sizes_of(module)) == sizes
    for shapes in (example, others):
        args = [torch.randn(shape) for shape in shapes]
        torch.testing.assert_close(module(*args), function(*args))


def test_symbolic_graphs_of_what_allows_one_size():
    def function(x):
        return x.sum() if x.shape[0] == 5 else x.mean()

    module = make_fx(function, tracing_mode="symbolic")(torch.ones(5))
    assert not _sizes_of(module) and module(torch.ones(5)).item() == 5
    nested = make_fx(lambda d, n: d["x"] + n, tracing_mode="symbolic")({"x": torch.ones(3)}, 2)
    assert nested({"x": torch.ones(4)}, 2).tolist() == [3, 3, 3, 3]
    scalar = make_fx(torch.sin, tracing_mode="symbolic")(torch.tensor(0.0))
    assert scalar(torch.tensor(0.0)).item() == 0
    with pytest.raises(AssertionError, match="tracing_mode should be one of"):
        make_fx(torch.sin, tracing_mode="shapes")


def _shifted(x):
    return torch.empty(10 - x.shape[0])


def _scaled(x):
    return x / x.shape[-1] ** 0.5, x * (1 / x.shape[0]), x.shape[0] / 5


def _scaled_by(x, n):
    return x * n, x.new_ones(n, n + 1), n // 2


@pytest.mark.parametrize(
    ("function", "first", "further"),
    [
        (_shifted, (torch.ones(2),), [(torch.ones(3),), (torch.ones(9),)]),
        (_scaled, (torch.ones(5, 4),), [(torch.ones(3, 7),), (torch.ones(64, 2),)]),
        (_scaled_by, (torch.ones(3), 4), [(torch.ones(3), 9), (torch.ones(8), 2)]),
    ],
)
def test_symbolic_graphs_compute_with_what_the_example_had(function, first, further):
    graph = make_fx(function, tracing_mode="symbolic")(*first)
    for args in (first, *further):
        found, expected = (torch.utils._pytree.tree_leaves(run(*args)) for run in (graph, function))
        for a, b in zip(found, expected, strict=True):
            if function is _shifted:  # memory as it was found
                assert a.shape == b.shape
            else:
                assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.mark.parametrize("transform", [torch.func.grad, lambda f: torch.vmap(torch.func.grad(f))])
def test_gradients_through_written_views_are_operators(transform):
    """Memory that a backward pass makes for itself is made by operators: none of it is a constant."""

    def loss(a):
        b = a * 2
        b[:2] = a[1:3] * 3
        b[1:].square_()
        return b.square().sum()

    module = check(transform(loss), torch.randn(5, 4))
    assert not [n for n in module.graph.nodes if n.op == "get_attr"]


def test_missing_gradients_of_functions_are_operators():
    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            return first * 2 + second * 3

    def gradient(x):
        return torch.autograd.grad(First.apply(x)[0].sum(), x)[0]

    module = make_fx(gradient)(torch.randn(3, requires_grad=True))
    assert OPERATORS.zeros.default in targets(module)
    assert not [n for n in module.graph.nodes if n.op == "get_attr"]


def test_sizes_are_read_in_their_order():
    graph = make_fx(lambda x: x.new_zeros(x.shape), tracing_mode="symbolic")(torch.ones(2, 3, 4)).graph
    read = [n.args[1] for n in graph.nodes if n.target is torch.ops.aten.sym_size.int]
    assert read == [0, 1, 2]


def test_numbers_have_overloads_of_their_own():
    def program(x, y):
        y.ge_(2)
        return x**3 + (x > 1) + x.remainder(2) - y.pow_(2) + (x > y) * 2

    names = [str(target) for target in targets(check(program, torch.rand(3), torch.rand(3)))]
    compared = [name for name in names if not name.startswith(("aten.add", "aten.sub"))]
    assert compared == [
        "aten.ge_.Scalar",
        "aten.pow.Tensor_Scalar",
        "aten.gt.Scalar",
        "aten.remainder.Scalar",
        "aten.pow_.Scalar",
        "aten.gt.Tensor",
        "aten.mul.Tensor",
    ]
