"""Reductions and softmax along rows that `torch.compile` fuses with what is around them."""

import random

import pytest
from compile_checks import no_measuring  # noqa: F401

import rushlight as torch
from rushlight._inductor import _rows
from rushlight._inductor import config as inductor_config

F = torch.nn.functional

pytestmark = pytest.mark.usefixtures("no_measuring")


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    monkeypatch.setattr(_rows, "_FEWEST", {"cpu": 0})


def operators(function, *args):
    """The operators that are left of a program."""
    from rushlight._dynamo._capture import capture
    from rushlight._inductor.compile_fx import compile_fx

    with torch.no_grad():
        captured = capture(function, args, {})
        compile_fx(captured.module, captured.example_inputs)
    return [n.target._opname for n in captured.graph.nodes if hasattr(n.target, "_opname")]


def root_mean_square(x, y):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * y


def standardize(x, y):
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred / (variance + 1e-5).sqrt() + y, variance


def masked_softmax(x, y):
    return torch.softmax((x * 0.3).masked_fill(y > 0.5, float("-inf")), -1) * 2


def own_softmax(x, y):
    e = (x + y - (x + y).amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def distances(x, y):
    return ((x - y) ** 2).sum(-1), (x - y).abs().mean(-1), (x * y).amin(dim=-1, keepdim=True)


def entropy(x, y):
    p = F.log_softmax(x + y, dim=-1)
    return (-(p.exp() * p)).sum(-1)


def rows_of_rows(x, y):
    total = (x * y).sum(-1, keepdim=True)
    scale = torch.where(total > 0, total.sqrt(), 1 - total)
    return x / scale + scale * 2, scale.tanh(), total


FUNCTIONS = [root_mean_square, standardize, masked_softmax, own_softmax, distances, entropy, rows_of_rows]
SHAPES = [
    ((7,), (7,)),
    ((5, 300), (300,)),
    ((3, 4, 33), (4, 1)),
    ((2, 3, 5, 9), (3, 1, 9)),
    ((40, 2049), (1,)),
    ((0, 4), (4,)),
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_equal_to_the_last_bit(function, dtype):
    for first, second in SHAPES:
        x, y = torch.randn(first).to(dtype), torch.randn(second).to(dtype)
        fast = torch.compile(function)
        with torch.no_grad():
            for _ in range(2):
                torch.testing.assert_close(fast(x, y), function(x, y), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_other_operator_is_left(function):
    names = operators(function, torch.randn(6, 20), torch.randn(6, 20))
    apart = 3 if function is distances else 1  # its results share no step
    assert names.count("_fused_rows") == apart and set(names) <= {"_fused_rows", "squeeze"}


def test_turned_and_gathered_operands():
    """Sums of rows that do not lie in memory as rows are taken in another order without a graph."""
    x, y = torch.randn(30, 40).t(), torch.randn(80, 30)[::2]
    with torch.no_grad():
        for function in FUNCTIONS:
            torch.testing.assert_close(torch.compile(function)(x, y), function(x, y), rtol=1e-4, atol=1e-4)


def test_not_a_number_and_infinities():
    x = torch.randn(6, 9)
    x[1, 2], x[2, 3], x[3, 4], x[4] = float("nan"), float("inf"), float("-inf"), float("-inf")
    with torch.no_grad():
        for function in FUNCTIONS:
            fast = torch.compile(function)
            torch.testing.assert_close(fast(x, x), function(x, x), rtol=0, atol=0, equal_nan=True)


def test_what_stays_apart():
    """Other dimensions, and what takes a row's sum without its dimension."""

    def f(x, y):
        total = (x + y).sum(-1)
        return total * 2, (x * y).sum(0), (x - y).exp() + total

    names = operators(f, torch.randn(8, 8), torch.randn(8, 8))
    assert "sum" in names
    x, y = torch.randn(8, 8), torch.randn(8, 8)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(f)(x, y), f(x, y), rtol=0, atol=0)


def random_program(seed):
    """A function of two matrices, of pointwise steps, reductions and writes in any order."""
    choose = random.Random(seed)
    unary = ["exp", "tanh", "sigmoid", "abs", "square", "relu", "neg"]
    steps = []
    for _ in range(choose.randint(3, 14)):
        steps.append(
            (
                choose.randrange(9),
                choose.random(),
                choose.random(),
                choose.choice(unary),
                choose.uniform(-2, 2),
            )
        )

    def program(x, y):
        values = [x, y, x + 0]
        for kind, first, second, name, number in steps:
            a, b = values[int(first * len(values))], values[int(second * len(values))]
            if kind <= 1:
                values.append(getattr(a.clamp(-3, 3), name)())
            elif kind <= 3:
                values.append(a + b * number)
            elif kind == 4:
                values.append(a.sum(-1, keepdim=True) if a.shape[-1] > 1 else a)
            elif kind == 5:
                values.append(torch.where(a > number, a, b).mean(-1, keepdim=True))
            elif kind == 6:
                values.append(a.softmax(-1) - b.amax(-1, keepdim=True))
            elif kind == 7:
                values.append((a * number).sum(-1).unsqueeze(-1) / 4)
            else:
                values[2] = values[2].clone().add_(a.tanh())
        return values[-1], values[len(values) // 2], values[2], sum(v.sum() for v in values)

    return program


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed, monkeypatch):
    monkeypatch.setattr(inductor_config, "batch_products", False)
    program = random_program(seed)
    torch.manual_seed(seed)
    fast = torch.compile(program)
    for shape in [(4, 6), (3, 2, 17)]:
        x, y = torch.randn(shape), torch.randn(shape[-1])
        with torch.no_grad():
            torch.testing.assert_close(fast(x, y), program(x, y), rtol=1e-6, atol=1e-6, equal_nan=True)
        x, y = x.requires_grad_(), y.requires_grad_()
        found = []
        for run in (fast, program):
            results = [r for r in run(x, y) if r.requires_grad]
            total = sum((r * (i + 1)).tanh().sum() for i, r in enumerate(results))
            found.append([*results, *torch.autograd.grad(total, [x, y], allow_unused=True)])
        for a, b in zip(*found):
            assert (a is None) == (b is None)
            if a is not None:
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ([1, -9, 0, 1, 1], [], [3, 4], []),
        ([1, -2, 0, 0, 1, 1], [], [3, 4], []),
        ([2, -3, 0, -3, 1, 1, 2], [], [3, 4], []),
        ([1, -3, 0, 1, 1], [], [3, 0], []),
        ([1, -3, 0, 1, 1], [], [3, 4], [7]),
        ([1, -3, 0, 1, 1], [], [2, 4], []),
        ([1, -3, 0, 1, 1], [], [], []),
        ([1, -3, 0], [], [3, 4], []),
        ([2, -3, 0, 0, 0, 9, 1, 2], [], [3, 4], []),
    ],
)
def test_programs_that_are_none(arguments):
    code, numbers, shape, rows = arguments
    with pytest.raises((ValueError, RuntimeError, IndexError)):
        torch.ops.aten._fused_rows([torch.randn(3, 4)], code, numbers, torch.float32, shape, rows)
