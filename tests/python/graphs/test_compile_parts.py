"""Programs that no graph is for: they run as they are written, and the modules that they call as graphs."""

import copy
import gc
import traceback
import weakref

import pytest
from compile_checks import X, compiled_of, graphs, no_measuring  # noqa: F401 - a fixture

import rushlight as torch
from rushlight import nn
from rushlight._dynamo.utils import counters

pytestmark = pytest.mark.usefixtures("no_measuring")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.inner(x)) * 2 + x


class Loud(nn.Module):
    """A module that breaks, around one that does not."""

    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        print("loud")
        return self.block(x)


class Net(nn.Module):
    def __init__(self, *blocks):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Sequential(nn.Linear(4, 2), nn.ReLU())

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        print("positive" if x.sum() > 0 else "negative")
        return self.head(x)


def names_behind(result):
    """The nodes of autograd behind a result, by name."""
    names, pending = [], [result.grad_fn]
    while pending:
        step = pending.pop()
        if step is not None:
            names.append(step.name())
            pending += [following for following, _ in step.next_functions]
    return names


def graphs_behind(result):
    return names_behind(result).count("CompiledFunctionBackward")


def parts_of(fast):
    return [module() for module in compiled_of(fast).parts.members.values()]


def test_modules_run_through_graphs(capsys):
    model = Net(Block(), Block())
    twin, fast = copy.deepcopy(model), torch.compile(model)
    for step in range(4):
        x = X + step
        got = fast(x)
        got_said = capsys.readouterr().out
        wanted = twin(x)
        assert got_said == capsys.readouterr().out  # once, and in order
        assert torch.equal(got, wanted)
        assert graphs_behind(got) == 3 and graphs_behind(wanted) == 0
        got.sum().backward(), wanted.sum().backward()
    for mine, theirs in zip(model.parameters(), twin.parameters()):
        assert torch.equal(mine.grad, theirs.grad)
    assert parts_of(fast) == [*model.blocks, model.head]
    assert "test_compile_parts.py" in compiled_of(fast).reason


def test_parts_run_after_a_trace():
    """Tracers give `Module` another `__call__` for a while, which classes remember from Python 3.12 on."""
    torch.fx.symbolic_trace(Block())
    torch.export.export(Block(), (X,))
    result = torch.compile(Net(Block(), Block()))(X)
    assert graphs_behind(result) == 3


def test_parts_that_break_are_split(capsys):
    model = Net(Loud(), Block())
    fast = torch.compile(model)
    for _ in range(3):
        result = fast(X)
        assert capsys.readouterr().out.split()[0] == "loud"
        assert torch.equal(result, model(X)) and graphs_behind(result) == 3
        capsys.readouterr()
    assert set(parts_of(fast)) == {model.blocks[0].block, model.blocks[1], model.head}


def test_modules_called_elsewhere_run_as_they_are_written():
    block = Block()

    def program(x):
        if x.sum() > 1e9:
            raise ValueError
        return block(x)

    fast = torch.compile(program)
    for _ in range(2):
        assert graphs_behind(fast(X)) == 1
        assert graphs_behind(block(X)) == 0 and graphs_behind(program(X)) == 0
    assert graphs_behind(copy.deepcopy(block)(X)) == 0
    assert "_compiled_call_impl" not in vars(block)


class Holder:
    def __init__(self):
        self.block = Block()

    def run(self, x):
        print(end="")
        return self.block(x)


def programs():
    """(a program that breaks, its arguments) for each way to come by a module."""
    block, listed, holder = Block(), [Block()], Holder()
    yield (lambda x: (print(end=""), block(x))[1]), (X,)
    yield (lambda x: (print(end=""), listed[0](x))[1]), (X,)
    yield (lambda x, m=block: (print(end=""), m(x))[1]), (X,)
    yield (lambda m, x: (print(end=""), m(x))[1]), (block, X)
    yield holder.run, (X,)


@pytest.mark.parametrize("which", range(5))
def test_ways_to_come_by_a_module(which):
    program, args = list(programs())[which]
    fast = torch.compile(program)
    for _ in range(3):
        result = fast(*args)
        assert torch.equal(result, program(*args)) and graphs_behind(result) == 1


def test_errors_come_from_the_programs_lines():
    class Picky(Block):
        def forward(self, x):
            if x.shape[0] == 1:
                raise ValueError("one row")
            return super().forward(x)

    model = Net(Picky())
    fast = torch.compile(model)
    fast(X), fast(X)
    with pytest.raises(ValueError, match="one row") as caught:
        fast(X[:1])
    places = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert places.count(__file__) == 3  # here, in Net and in Picky
    assert caught.value.__context__ is None
    assert torch.equal(fast(X), model(X))


def test_full_graphs_have_no_parts():
    model = Net(Block())
    fast = torch.compile(model, fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="cannot be compiled as one graph"):
        fast(X)
    assert not parts_of(fast)


def test_programs_share_modules(capsys):
    model, seen = Net(Block()), []

    def backend(name):
        def compile_graph(module, inputs):
            seen.append(name)
            return module.forward

        return compile_graph

    first, second = (torch.compile(model, backend=backend(name)) for name in "ab")
    for _ in range(2):
        assert torch.equal(first(X), model(X)) and torch.equal(second(X), model(X))
    assert seen == ["a", "a", "b", "b"]
    del first
    gc.collect()
    second(X)
    assert len(parts_of(second)) == 2 and seen == ["a", "a", "b", "b"]


def test_parts_end_with_their_program():
    model = Net(Block())
    fast = torch.compile(model)
    fast(X)
    parts = compiled_of(fast).parts
    assert parts.members
    torch._dynamo.reset()
    assert not parts.members and graphs_behind(model(X)) == 0
    assert graphs_behind(fast(X)) == 2
    del fast
    gc.collect()
    assert not parts.members
    program = weakref.ref(model.head)
    del model, parts
    gc.collect()
    assert program() is None


def test_what_is_disabled_runs_as_it_is_written():
    block, other = Block(), Block()

    @torch.compiler.disable
    def inner(x):
        return block(x)

    def program(x):
        return other(inner(x)), block(x)

    result = torch.compile(program)(X)
    assert list(map(graphs_behind, result)) == [1, 1]
    assert "TanhBackward0" in names_behind(result[0])
    with torch.compiler.set_stance("force_eager"):
        assert graphs_behind(torch.compile(program)(X)[1]) == 0


def test_parts_that_do_not_pay_cost_nothing():
    model = Net(Block())
    fast = torch.compile(model)
    fast(X)
    whole = compiled_of(fast)
    assert whole.direct is not model
    found = [entry for module in parts_of(fast) for entry in _parts_graphs(module)]
    for part in found:
        part.give_up("it does not pay")
    assert not parts_of(fast) and whole.direct is model
    assert graphs_behind(fast(X)) == 0


def _parts_graphs(module):
    """What runs a module as a part of programs."""
    return [
        part
        for graphs in gc.get_referents(module)
        if isinstance(graphs, dict)
        for part in graphs.values()
        if hasattr(type(part), "give_up")
    ]


def test_breaks_are_counted_and_explained(capsys):
    model = Net(Loud())
    counters.clear()
    torch.compile(model)(X)
    (reason,) = counters["graph_break"]  # of the network and of its block
    assert "print" in reason and counters["stats"]["unique_graphs"] == 2
    told = torch._dynamo.explain(model)(X)
    assert (told.graph_count, told.graph_break_count) == (2, 1)
    assert told.break_reasons == [reason]
    assert told.op_count == sum(map(len, told.ops_per_graph)) > 0
    assert graphs_behind(model(X)) == 0


class Warns(nn.Module):
    """A module that prints in its first call alone, as libraries warn once."""

    def __init__(self):
        super().__init__()
        self.block, self.told = Block(), []

    def forward(self, x):
        if not self.told:
            self.told.append(True)
            print("slow on this machine")
        return self.block(x).sin()


def test_what_happens_once_costs_no_graph(capsys):
    model = Warns()
    fast = torch.compile(model)
    for _ in range(3):
        torch.testing.assert_close(fast(X), model.block(X).sin(), rtol=0, atol=0)
    assert graphs(fast) == 1 and compiled_of(fast).reason is None
    assert capsys.readouterr().out.count("slow") == 1
    with pytest.raises(torch._dynamo.exc.Unsupported, match="print"):
        torch.compile(Warns(), fullgraph=True)(X)


def test_what_happens_each_time_is_tried_twice(capsys):
    fast = torch.compile(Loud())
    for _ in range(3):
        fast(X)
    assert graphs(fast) == 0 and "print" in compiled_of(fast).reason
    assert capsys.readouterr().out.count("loud") == 3
