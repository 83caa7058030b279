"""Graphs of `torch.compile` for many sizes: which programs get one, for which sizes, and why others don't."""

import logging
import math

import pytest
from compile_checks import compiled_of, no_measuring  # noqa: F401

import rushlight as torch
from rushlight import nn
from rushlight._dynamo._trials import SizedTrials
from rushlight.nn import functional as F

pytestmark = pytest.mark.usefixtures("no_measuring")

SIZES = (8, 12, 7, 20, 21, 22, 2, 3, 64, 15)
TABLE = [1.0] * 5 + [2.0] * 6 + [3.0] * 5000


def ranges(fn):
    """The sizes that the graphs leave open."""
    known = [entry.guards.symbols for entry in compiled_of(fn).entries]
    return [list(symbols.bounds.values()) for symbols in known if symbols is not None]


def run_all(function, shapes):
    """The compiled function after calls with these shapes, each compared with the function itself."""
    torch._dynamo.reset()
    fast = torch.compile(function)
    for shape in shapes:
        x = torch.randn(*shape)
        torch.manual_seed(0)
        result = fast(x)
        torch.manual_seed(0)
        torch.testing.assert_close(result, function(x), rtol=0, atol=0)
    return fast


def averages(x):
    return x.mean(0) + x.sum() / x.shape[0] - x.var(1, keepdim=True).sqrt()


def positions(x):
    return x + torch.arange(x.shape[0]).unsqueeze(1)


def halves_of_rows(x):
    return F.gelu(x).view(x.shape[0] * 10 // 2, -1) * 2


def wider(x):
    return torch.cat([x, torch.zeros(x.shape[0], 4), x.new_ones(*x.shape[:-1], 2)], 1)


def neighbours(x):
    return x[: x.shape[0] - 1] + x[1:]


def flat(x):
    return x.reshape(x.numel()) * 2


def drawn(x):
    return x + torch.rand(x.shape[0], 1)


def unpacked(x):
    rows, columns = x.size()
    assert columns == 10 and rows != 0
    return x.sum(0).expand(rows, -1) * columns


@pytest.mark.parametrize(
    "function", [averages, positions, halves_of_rows, wider, neighbours, flat, drawn, unpacked, F.softplus]
)
def test_one_graph_for_all_sizes(function):
    fast = run_all(function, [(n, 10) for n in SIZES])
    assert len(compiled_of(fast).entries) == 2  # the first call's, and that of all others
    assert ranges(fast) == [[(2, math.inf)]]


def larger(x):
    return x * 2 if x.shape[0] > 20 else x * 3


def doubled(x):
    return x * 2 if 41 >= x.shape[0] * 2 + 1 else x * 3


def below(x):
    return x * 2 if -x.shape[0] + 21 > 0 else x * 3


@pytest.mark.parametrize("function", [larger, doubled, below])
def test_comparisons_bound_the_sizes(function):
    fast = run_all(function, [(n, 10) for n in SIZES])
    assert ranges(fast) == [[(2, 20)], [(21, math.inf)]]
    assert len(compiled_of(fast).entries) == 3


def equal(x):
    return x * 2 if x.shape[0] == 7 else x * 3


def first_rows(x):
    for i in range(min(x.shape[0], 3)):
        x = x + i
    return x


def test_sizes_that_are_special():
    fast = run_all(equal, [(n, 10) for n in SIZES])
    assert ranges(fast)[0] == [(8, math.inf)]
    fast = run_all(first_rows, [(n, 10) for n in SIZES])
    assert ranges(fast) == [[(4, math.inf)]]


def odd(x):
    return x * 2 if x.shape[0] % 2 else x * 3


def root(x):
    return x / math.sqrt(x.shape[0])


def power(x):
    return x * x.shape[0] ** 0.5


def chunks(x):
    return torch.cat([part * 2 for part in x.chunk(2)])


def looked_up(x):
    return x * TABLE[x.shape[0]]


def counted(x):
    return x * (2 if len(x) > 5 else 3)


def printed(x):
    return x * (2 if f"{x.shape[0]}" == "8" else 3)


def hashed(x):
    return x * {8: 2}.get(x.shape[0], 3)


def by_stride(x):
    return x * (2 if x.t().stride(1) == 10 else x.t().contiguous().stride(0))


def tensor_of_size(x):
    return x + torch.tensor(float(x.shape[0]))


def returned(x):
    return x * 2, x.shape[0]


def by_row(x):
    return torch.stack([row * 2 for row in x])


def by_range(x):
    total = x[0]
    for i in range(1, x.shape[0]):
        total = total + x[i]
    return total


def sliced(x):
    return x[:10] * 2


def function_of_torch(x):
    return x * (2 if torch.numel(x) > 100 else 3)


def method_of_the_class(x):
    return x * (2 if torch.Tensor.size(x, 0) > 10 else 3)


def pairs(x):
    return (x.unsqueeze(0) + x.unsqueeze(1)).reshape(-1, x.shape[1])


def product(x):
    return x * (2 if math.prod(x.shape) > 100 else 3)


@pytest.mark.parametrize(
    "function",
    [
        odd,
        root,
        power,
        chunks,
        looked_up,
        counted,
        printed,
        hashed,
        by_stride,
        tensor_of_size,
        returned,
        by_row,
    ]
    + [by_range, sliced, function_of_torch, method_of_the_class, product, pairs],
)
def test_no_wrong_answer(function, monkeypatch):
    """Whatever a program does with its sizes, it gives what it gives without a graph."""
    monkeypatch.setattr(torch._dynamo.config, "recompile_limit", 100)
    monkeypatch.setattr(torch._dynamo.config, "cache_size_limit", 100)
    fast = run_all(function, [(n, 10) for n in SIZES])
    assert all(bounds != [(2, math.inf)] for bounds in ranges(fast))


def test_two_sizes():
    def attention(x):
        batch, length, width = x.shape
        heads = x.view(batch, length, 2, width // 2).transpose(1, 2)
        return (
            F.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).reshape(batch, length, width)
        )

    shapes = [(2, 5, 8), (3, 5, 8), (7, 5, 8), (4, 6, 8), (4, 9, 8), (2, 5, 8), (9, 31, 8)]
    fast = run_all(attention, shapes)
    assert ranges(fast) == [[(2, math.inf)], [(2, math.inf)] * 2]


def test_equal_sizes_are_not_taken_for_one():
    def f(x, y):
        return (x @ y).relu() + x.sum()

    fast = torch.compile(f)
    for n, m in ((4, 4), (6, 6), (8, 8)):  # changed alike: one size
        x, y = torch.randn(n, m), torch.randn(m, n)
        torch.testing.assert_close(fast(x, y), f(x, y), rtol=0, atol=0)
    for n, m in ((6, 5), (6, 9), (3, 12)):
        x, y = torch.randn(n, m), torch.randn(m, n)
        torch.testing.assert_close(fast(x, y), f(x, y), rtol=0, atol=0)
    assert ranges(fast) == [[(2, math.inf)], [(2, math.inf)] * 2]


def test_tables_bound_the_sizes():
    table = nn.Parameter(torch.randn(300, 8))

    def f(x):
        return x + table[: x.shape[0]]

    fast = torch.compile(f)
    for n in (4, 6, 256, 257, 300, 299):
        x = torch.randn(n, 8)
        torch.testing.assert_close(fast(x), f(x), rtol=0, atol=0)
    assert ranges(fast) == [[(2, 256)]]


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2)
        )
        self.head = nn.Linear(8, 5)

    def forward(self, x, y):
        scores = self.head(self.layers(x).mean((2, 3)))
        return scores, F.cross_entropy(scores, y)


@pytest.mark.parametrize("training", [True, False])
def test_batches_of_a_network(training):
    models = [Network().train(training) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    fast = torch.compile(models[0])
    for size in (4, 6, 3, 17, 4):
        x, y = torch.randn(size, 3, 6, 6, requires_grad=True), torch.randint(0, 5, (size,))
        found = []
        for run, model in ((fast, models[0]), (models[1], models[1])):
            torch.manual_seed(3)
            scores, loss = run(x, y)
            loss.backward()
            found.append([scores, loss, x.grad, *(p.grad for p in model.parameters()), *model.buffers()])
            x.grad = None
            model.zero_grad()
        torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)
    assert len(compiled_of(fast).entries) == 2 and ranges(fast) == [[(2, math.inf)]]


def test_gradients_of_gradients_at_other_sizes():
    def f(x):
        return (x.sin().view(x.shape[0] * 2, -1) * x.shape[0]).sum(0).square().sum()

    fast = torch.compile(f)
    for n in (4, 6, 9):
        x = torch.randn(n, 4, dtype=torch.float64, requires_grad=True)
        second = []
        for run in (fast, f):
            (gradient,) = torch.autograd.grad(run(x), x, create_graph=True)
            second.append(torch.autograd.grad(gradient.square().sum(), x)[0])
        torch.testing.assert_close(*second)
    assert ranges(fast) == [[(2, math.inf)]]


def test_frozen_weights_serve_all_sizes():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3)
    ).eval()
    model(torch.randn(2, 3, 5, 5))
    fast = torch.compile(model)
    with torch.no_grad():
        for n in (4, 6, 9):
            x = torch.randn(n, 3, 5, 5)
            torch.testing.assert_close(fast(x), model(x))
        model[0].weight.mul_(2)
        torch.testing.assert_close(fast(x), model(x))
    assert len(compiled_of(fast).entries) == 2


def test_other_layouts_are_other_calls():
    def f(x):
        return x.exp().sum(1)

    fast = torch.compile(f)
    for x in (
        torch.randn(4, 6),
        torch.randn(5, 6),
        torch.randn(7, 6),
        torch.randn(6, 9).t(),
        torch.randn(9, 12)[:, ::2],
    ):
        torch.testing.assert_close(fast(x), f(x), rtol=0, atol=0)
    assert len(compiled_of(fast).entries) == 4
    fast, wide = torch.compile(f), torch.randn(9, 12)
    for n in (4, 6, 9):  # parts of one tensor, with its strides
        torch.testing.assert_close(fast(wide[:n, :6]), f(wide[:n, :6]), rtol=0, atol=0)
    assert ranges(fast) == [[(2, math.inf)]]
    one, other = wide[:4], wide[4:8]
    both = torch.compile(lambda a, b: a + b)
    assert torch.equal(both(one, other), one + other)
    assert torch.equal(both(wide[:3], wide[3:6]), wide[:3] + wide[3:6])
    assert ranges(both) == []  # they share memory


@pytest.mark.parametrize("dynamic, expected", [(None, 2), (False, 3), (True, 1)])
def test_when_sizes_stay_open(dynamic, expected):
    fast = torch.compile(averages, dynamic=dynamic)
    for n in (4, 6, 9):
        x = torch.randn(n, 10)
        torch.testing.assert_close(fast(x), averages(x), rtol=0, atol=0)
    assert len(compiled_of(fast).entries) == expected


def test_marks():
    x, y = torch.randn(4, 10), torch.randn(4, 10)
    torch._dynamo.mark_dynamic(x, 0)
    fast = torch.compile(averages)
    fast(x)
    assert ranges(fast) == [[(2, math.inf)]]
    assert not vars(x)
    torch._dynamo.mark_static(y)
    slow = torch.compile(averages, dynamic=True)
    slow(y)
    assert ranges(slow) == []


def test_settings(monkeypatch):
    monkeypatch.setattr(torch._dynamo.config, "automatic_dynamic_shapes", False)
    fast = torch.compile(averages)
    for n in (4, 6, 9):
        fast(torch.randn(n, 10))
    assert ranges(fast) == [] and len(compiled_of(fast).entries) == 3


def test_each_recompilation_is_explained_in_one_line(caplog, monkeypatch):
    logger = logging.getLogger("torch.__recompiles")
    monkeypatch.setattr(logger, "propagate", True)
    with caplog.at_level(logging.INFO, logger="torch.__recompiles"):
        for function in (larger, odd):
            fast = torch.compile(function)
            for n in (4, 6, 30):
                fast(torch.randn(n, 10))
    lines = [record.getMessage() for record in caplog.records]
    assert "larger is compiled for sizes of 2 to 20 in dimension 0 of input 0" in lines
    assert "larger is compiled for sizes of 21 to inf in dimension 0 of input 0" in lines
    (why,) = [line for line in lines if line.startswith("odd is compiled for one size")]
    assert "the program divides a size" in why and "test_compile_sizes.py" in why
    assert all("\n" not in line for line in lines)


def test_trials_of_many_sizes():
    trials = SizedTrials()
    for n in range(2, 200):
        trials.select([torch.empty(n % 60)])
        trials.times[trials.next_is_compiled()].append((n % 60 + 1.0, n % 60 + 1.0))
    assert trials.complete()
    plain, graph = trials.best()
    assert plain == graph and not trials.pays()
    for tried in trials.of_sizes.values():
        tried.times[1][:] = [(passed / 2, used / 2) for passed, used in tried.times[1]]
    assert trials.pays()
    never_again = SizedTrials()
    for n in range(SizedTrials._MOST):
        assert not never_again.complete()
        never_again.select([torch.empty(n)])
        never_again.times[never_again.next_is_compiled()].append((1.0, 1.0))
    assert never_again.complete() and never_again.pays()
    assert not never_again.is_clear()  # nothing was compared: other processes shall try again
