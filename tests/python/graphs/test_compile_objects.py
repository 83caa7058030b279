"""Programs with objects: those that a call brings and the program changes, those that it returns, and those
whose attributes, entries and members are asked for in ways of their own.
"""

import copy
import inspect
import logging
from contextvars import ContextVar

import pytest
from compile_checks import X, check, compiled_of, graphs, no_measuring  # noqa: F401

import rushlight as torch
from rushlight import nn

pytestmark = pytest.mark.usefixtures("no_measuring")


class Memory:
    """What a model keeps from call to call."""

    def __init__(self, size=3):
        self.state, self.seen, self.table = torch.zeros(size), [], {}


def _same(a, b):
    torch.testing.assert_close(a.state, b.state, rtol=0, atol=0)
    for mine, theirs in zip(a.seen, b.seen, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
    assert list(a.table) == list(b.table)
    for key in a.table:
        torch.testing.assert_close(a.table[key], b.table[key], rtol=0, atol=0)


def _step(x, memory):
    memory.state = memory.state * 0.5 + x
    if len(memory.seen) == 3:
        del memory.seen[0]
    memory.seen.append(memory.state.sum())
    memory.table["last"] = x * 2
    return memory.state + 1, memory


def test_changes_of_an_argument_happen_at_each_call():
    fast = torch.compile(_step, fullgraph=True)
    for _ in range(2):
        mine, theirs = Memory(), Memory()
        for _ in range(6):
            x = torch.randn(3)
            result, returned = fast(x, mine)
            expected, _ = _step(x, theirs)
            assert returned is mine
            torch.testing.assert_close(result, expected, rtol=0, atol=0)
            _same(mine, theirs)
    assert graphs(fast) == 4  # by the length of the list; the second memory needed no other


def test_one_graph_serves_what_grows():
    class Cache:
        def __init__(self):
            self.keys = torch.zeros(1, 2, 4)

    def f(x, cache):
        cache.keys = torch.cat([cache.keys, x], 1)
        return (x @ cache.keys.mT).softmax(-1) @ cache.keys

    fast = torch.compile(f, fullgraph=True)
    mine, theirs = Cache(), Cache()
    for _ in range(12):
        x = torch.randn(1, 1, 4)
        torch.testing.assert_close(fast(x, mine), f(x, theirs))
        torch.testing.assert_close(mine.keys, theirs.keys, rtol=0, atol=0)
    assert mine.keys.shape == (1, 14, 4) and graphs(fast) == 2


def test_an_attribute_that_is_deleted():
    def f(x, memory):
        if hasattr(memory, "extra"):
            del memory.extra
            return x + 1
        memory.extra = x
        return x - 1

    fast = torch.compile(f, fullgraph=True)
    memory = Memory()
    for i in range(6):
        torch.testing.assert_close(fast(X, memory), X + (1 if i % 2 else -1), rtol=0, atol=0)
        assert hasattr(memory, "extra") == (i % 2 == 0)
    assert graphs(fast) == 2


def test_lists_and_dicts_that_the_program_changes():
    def f(x, items, table):
        items.append(x * 2)
        items[0], items[1] = items[1], items[0]
        table["a"] = table.pop("b") + x
        return items

    def arguments():
        return [X.clone(), X + 1], {"b": X * 3}

    fast = torch.compile(f, fullgraph=True)
    for _ in range(3):
        mine, theirs = arguments(), arguments()
        first = mine[0][0]
        assert fast(X, *mine) is mine[0]
        f(X, *theirs)
        assert mine[0][1] is first
        for a, b in zip(mine[0], theirs[0], strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0)
        assert list(mine[1]) == ["a"]
        torch.testing.assert_close(mine[1]["a"], theirs[1]["a"], rtol=0, atol=0)
    assert graphs(fast) == 1


def test_gradients_reach_through_what_was_stored():
    def f(x, memory):
        memory.state = (x * memory.state).tanh()
        return memory.state.sum()

    fast = torch.compile(f, fullgraph=True)
    found = []
    for run in (fast, fast, f):
        x, memory = torch.linspace(-1, 1, 3).requires_grad_(), Memory()
        memory.state = torch.ones(3)
        (run(x, memory) + run(x, memory) + memory.state.square().sum()).backward()
        found.append(x.grad)
    torch.testing.assert_close(found[0], found[2])
    torch.testing.assert_close(found[1], found[2])
    assert graphs(fast) > 0


_known = Memory()


def _reads_both(x, memory):
    memory.state = x + 1
    return _known.state * 2


def test_an_object_that_is_known_otherwise_too():
    fast = torch.compile(_reads_both)
    _known.state = torch.zeros(3, 4)
    torch.testing.assert_close(fast(X, Memory()), torch.zeros(3, 4))
    torch.testing.assert_close(fast(X, _known), X * 2 + 2)
    torch.testing.assert_close(fast(X, Memory()), X * 2 + 2)


def test_one_object_as_two_arguments():
    def f(x, a, b):
        a.state = x + 1
        return b.state * 2

    fast = torch.compile(f)
    for _ in range(2):
        torch.testing.assert_close(fast(X, Memory(), Memory()), torch.zeros(3))
        one = Memory()
        torch.testing.assert_close(fast(X, one, one), X * 2 + 2)


arguments = [1.0]


def test_a_global_of_any_name_is_watched():
    def f(x):
        return x * arguments[0]

    fast = torch.compile(f)
    try:
        for factor in (2.0, 3.0):
            arguments[0] = factor
            torch.testing.assert_close(fast(X), X * factor, rtol=0, atol=0)
    finally:
        arguments[0] = 1.0


def test_results_that_are_objects():
    class Layer:
        def __init__(self, keys):
            self.keys, self.kind, self.name = keys, type(self), "layer"

    class Result:
        def __init__(self, x):
            self.layers = [Layer(x * 2), Layer(x * 3)]
            self.first, self.again = self.layers[0], self.layers

    def f(x):
        return Result(x.exp() + 1)

    fast = torch.compile(f, fullgraph=True)
    results = [fast(X) for _ in range(3)]
    for result in results:
        assert type(result) is Result and result.first is result.layers[0] and result.again is result.layers
        assert result.first.kind is Layer and result.first.name == "layer"
        torch.testing.assert_close(result.layers[1].keys, f(X).layers[1].keys, rtol=0, atol=0)
    assert results[1] is not results[2] and results[1].first is not results[2].first
    assert graphs(fast) == 1


class Settings:
    """Answers one name by another."""

    names = {"size": "width"}

    def __init__(self, width):
        self.width, self.scale = width, 2.0

    def __getattribute__(self, key):
        if key != "names" and key in super().__getattribute__("names"):
            key = super().__getattribute__("names")[key]
        return super().__getattribute__(key)


class Scaled(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings

    def forward(self, x):
        return x * self.settings.size + self.settings.scale


def test_attributes_that_a_class_computes():
    model = Scaled(Settings(3.0))
    fast = torch.compile(model, fullgraph=True)
    torch.testing.assert_close(fast(X), X * 3 + 2)
    model.settings.width = 4.0
    torch.testing.assert_close(fast(X), X * 4 + 2)
    model.settings.scale = 5.0
    torch.testing.assert_close(fast(X), X * 4 + 5)
    try:
        Settings.names["size"] = "scale"
        torch.testing.assert_close(fast(X), X * 5 + 5)
        del Settings.names["size"]
        model.settings.size = 6.0
        torch.testing.assert_close(fast(X), X * 6 + 5)
    finally:
        Settings.names["size"] = "width"


def test_sets_in_their_order():
    members = {8, 1}

    def f(x):
        for factor in members:
            x = x * factor + 1
        return x if 3 not in members else -x

    fast = torch.compile(f, fullgraph=True)
    for change in (lambda: None, lambda: members.add(3), lambda: members.discard(8), lambda: members.add(16)):
        change()
        torch.testing.assert_close(fast(X), f(X), rtol=0, atol=0)
    members.clear()
    members.update([0, 8])  # 0 and 8 meet in a table of eight: which was first decides
    torch.testing.assert_close(fast(X), f(X), rtol=0, atol=0)
    members.clear()
    members.update([8, 0])
    torch.testing.assert_close(fast(X), f(X), rtol=0, atol=0)


class Registry(dict):
    """A dict that is asked in its own way."""

    def get(self, key):
        return super().get(str(key)) or 1.0


def test_a_dict_of_another_class():
    registry = Registry(double=2.0)

    def f(x):
        return x * registry.get("double") + registry.get("none")

    fast = torch.compile(f, fullgraph=True)
    torch.testing.assert_close(fast(X), X * 2 + 1)
    registry["double"] = 3.0
    torch.testing.assert_close(fast(X), X * 3 + 1)
    registry["none"] = 7.0
    torch.testing.assert_close(fast(X), X * 3 + 7)


_logger, _context = logging.getLogger("rushlight.tests.quiet"), ContextVar("context", default=None)


def test_loggers_and_context_variables_that_stay_silent():
    def f(x):
        if _logger is None or _context is None:
            return x
        return x.exp() * 2

    check(f, (X,))

    def speaks(x):
        _context.set(1)
        return x * 2

    check(speaks, (X,), graph=False)


def test_copies_and_signatures():
    class Options:
        def __init__(self):
            self.scale, self.sizes = 2.0, [1, 2]

    options = Options()

    def f(x):
        mine = copy.deepcopy(options)
        mine.scale += len(inspect.signature(_step).parameters)
        mine.sizes.append(3)
        return x * mine.scale + len(mine.sizes)

    fast = torch.compile(f, fullgraph=True)
    torch.testing.assert_close(fast(X), X * 4 + 3)
    options.scale = 3.0
    torch.testing.assert_close(fast(X), X * 5 + 3)
    assert options.sizes == [1, 2]
    options.sizes.append(5)
    torch.testing.assert_close(fast(X), X * 5 + 4)


def test_entries_of_an_object():
    class Options:
        def __init__(self):
            self.a, self.b = 1.0, 2.0

        def total(self):
            return sum(self.__dict__.values())

    options = Options()
    fast = torch.compile(lambda x: x * options.total(), fullgraph=True)
    torch.testing.assert_close(fast(X), X * 3)
    options.b = 4.0
    torch.testing.assert_close(fast(X), X * 5)
    options.c = 1.0
    torch.testing.assert_close(fast(X), X * 6)
    check(lambda x: x * (1 + len(x.__dict__)), (X,), graph=False)


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.kind = self.scale = None

    def forward(self, x):
        if self.kind is None:
            self.kind, self.scale = "mean", torch.ones(4) * 3
        return x * self.scale + 1


def test_what_a_first_call_finds_out():
    model = Lazy()
    fast = torch.compile(model, fullgraph=True)
    for _ in range(3):
        torch.testing.assert_close(fast(X), X * 3 + 1)
    assert model.kind == "mean" and type(model.scale) is torch.Tensor and graphs(fast) == 1


@torch.set_grad_enabled(False)
def _without(x):
    return x.exp()


@torch.set_grad_enabled(mode=True)
def _with(x):
    return x.sin()


def test_functions_decorated_with_set_grad_enabled():
    def f(x):
        with torch.no_grad():
            inner = _with(x * 2)
        return (_without(x) * x + inner.detach()).sum()

    x = torch.randn(3, 4, requires_grad=True)
    fast = torch.compile(f, fullgraph=True)
    for run in (fast, fast, f):
        (gradient,) = torch.autograd.grad(run(x), x)
        torch.testing.assert_close(gradient, x.detach().exp())
    with torch.no_grad():
        torch.testing.assert_close(fast(x), f(x))
        assert not fast(x).requires_grad
    assert graphs(fast) == 2


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.last, self.table = torch.zeros(3, 4), {"sum": torch.zeros(())}

    def forward(self, x):
        y = x.tanh() + self.mean
        self.mean = self.mean * 0.5 + x.detach().mean(0)
        self.last, before = y.detach() * 2, self.last
        self.table["sum"] = self.table["sum"] + before.sum()
        return y + before


@pytest.mark.parametrize("grad", [False, True])
def test_tensors_that_the_state_is_given(grad):
    mine, theirs = Running(), Running()
    fast = torch.compile(mine, fullgraph=True)
    for i in range(8):
        if i == 4:
            mine.last, theirs.last = torch.ones(3, 4), torch.ones(3, 4)
        if i == 5:
            mine.mean = theirs.mean = mine.last[0].clone()
        x = torch.randn(3, 4, requires_grad=grad)
        result, expected = fast(x), theirs(x)
        torch.testing.assert_close(result, expected, rtol=0, atol=0)
        if grad:
            for value in (result, expected):
                (gradient,) = torch.autograd.grad(value.sum(), x)
                torch.testing.assert_close(gradient, 1 - x.detach().tanh().square())
        for name in ("mean", "last"):
            torch.testing.assert_close(getattr(mine, name), getattr(theirs, name), rtol=0, atol=0)
        torch.testing.assert_close(mine.table, theirs.table, rtol=0, atol=0)
    assert graphs(fast) == 1 and mine.state_dict().keys() == theirs.state_dict().keys()


def test_a_tensor_that_two_places_hold():
    shared = torch.ones(3, 4)

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = shared, shared

        def forward(self, x):
            self.a = self.a + x
            return self.a + self.b

    mine, theirs = Both(), Both()
    fast = torch.compile(mine)
    for _ in range(4):
        torch.testing.assert_close(fast(X), theirs(X), rtol=0, atol=0)


def test_a_program_that_counts_runs_as_written():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.count = torch.zeros(3, 4), 0

        def forward(self, x):
            self.last, self.count = x * 2, self.count + 1
            return self.last * self.count

    mine, theirs = Counts(), Counts()
    fast = torch.compile(mine)
    for _ in range(4):
        torch.testing.assert_close(fast(X), theirs(X), rtol=0, atol=0)
    assert graphs(fast) == 0 and mine.count == 4


def test_tensors_that_are_returned_or_stored_as_they_are():
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.weight = torch.zeros(3, 4), torch.ones(2)

        def forward(self, x):
            before, self.last = self.last, x
            return x + 1, before, self.weight

    model = Last()
    fast = torch.compile(model, fullgraph=True)
    given = [torch.randn(3, 4) for _ in range(4)]
    for i, x in enumerate(given):
        result, before, weight = fast(x)
        torch.testing.assert_close(result, x + 1)
        assert model.last is x and weight is model.weight and (i == 0 or before is given[i - 1])
    assert fast(given[3])[1] is given[3] and graphs(fast) == 2  # the argument is the state


@pytest.mark.parametrize("what", ["count", "list"])
def test_programs_that_go_on_for_ever_run_by_their_modules(what):
    inner = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4))

    def f(x, memory):
        if what == "count":
            memory.state += 1.5
        else:
            memory.seen.append(x.sum())
        return inner(x) + memory.state + len(memory.seen)

    fast = torch.compile(f)
    mine, theirs = Memory(), Memory()
    mine.state = theirs.state = 0.5
    for _ in range(12):
        torch.testing.assert_close(fast(X, mine), f(X, theirs))
    assert mine.state == theirs.state and len(mine.seen) == len(theirs.seen)
    assert len(compiled_of(fast).parts.members) == 1 and graphs(fast) == (0 if what == "count" else 8)
