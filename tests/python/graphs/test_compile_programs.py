"""Compiled programs do what they do as written, whatever they are made of: an error inside the compiler never
reaches them. The longer search is tests/fuzz/compiled_programs.py.
"""

import functools
import importlib
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from compile_checks import X, compiled_of, no_measuring  # noqa: F401

import rushlight as torch
from rushlight import nn
from rushlight._command.names import is_aliased
from rushlight._dynamo import _compiled

inductor = importlib.import_module("rushlight._inductor.compile_fx")
ROOT = Path(torch.__file__).parents[1]
PROGRAMS = Path(__file__).parents[2] / "fuzz" / "compiled_programs.py"

pytestmark = pytest.mark.usefixtures("no_measuring")


@pytest.mark.skipif(is_aliased(), reason="runs the programs under both names by itself")
@pytest.mark.parametrize("name", ["rushlight", "torch"])
@pytest.mark.parametrize("options", [["--whole"], ["--cases", "60"], ["--cases", "20", "--dynamic"]])
def test_random_programs(name, options):
    done = subprocess.run(
        [sys.executable, PROGRAMS, "--name", name, *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    count, graphs = int(done.stdout.split()[0]), int(done.stdout.split(", ")[1].split()[0])
    assert graphs * 5 > count  # what no graph is for would prove nothing


# --- faults of the compiler's own


def broken(*args, **kwargs):
    raise TypeError("a fault\nof the compiler")


FAULTS = [(_compiled, "capture"), (_compiled, "Guards"), (inductor, "graph_text"), (inductor, "remove_dead")]


@pytest.mark.parametrize("where", FAULTS)
def test_faults_are_told_in_one_line_and_the_program_runs(monkeypatch, caplog, where):
    monkeypatch.setattr(*where, broken)

    def f(x):
        return (x + 1).relu()

    fast = torch.compile(f)
    with caplog.at_level(logging.WARNING, "torch._dynamo"):
        for _ in range(3):
            assert torch.equal(fast(X), f(X))
    (told,) = [record.getMessage() for record in caplog.records]
    assert "\n" not in told and "TypeError: a fault of the compiler" in told and f.__qualname__ in told
    assert "the compiler failed" in compiled_of(fast).reason
    with pytest.raises(torch._dynamo.exc.Unsupported, match="the compiler failed"):
        torch.compile(f, fullgraph=True)(X)


def test_errors_of_the_program_have_no_context_of_the_compilers(monkeypatch):
    monkeypatch.setattr(_compiled, "capture", broken)

    def f(x):
        raise ValueError("of the program")

    with pytest.raises(ValueError, match="of the program") as caught:
        torch.compile(f)(X)
    assert caught.value.__context__ is None


def test_a_graph_that_fails_gives_way(caplog):
    def f(x):
        return (x + 1).relu()

    fast = torch.compile(f)
    fast(X), fast(X), fast(X)
    compiled = compiled_of(fast)
    assert compiled.entries and compiled.fast is not None
    compiled.fast = broken
    with caplog.at_level(logging.WARNING, "torch._dynamo"):
        assert torch.equal(fast(X), f(X)) and torch.equal(fast(X), f(X))
    assert len(caplog.records) == 1 and compiled.reason.startswith("its graph raised TypeError")


def test_errors_that_depend_on_values_are_the_programs():
    table = torch.randn(4, 3)

    def f(i):
        return nn.functional.embedding(i, table) * 2

    fast = torch.compile(f)
    good, bad = torch.tensor([0, 3]), torch.tensor([0, 4])
    fast(good), fast(good)
    with pytest.raises(IndexError) as wanted:
        f(bad)
    for _ in range(2):
        with pytest.raises(IndexError) as got:
            fast(bad)
        assert str(got.value) == str(wanted.value) and got.value.__context__ is None
        assert torch.equal(fast(good), f(good))
    assert compiled_of(fast).reason is None


def test_a_back_end_of_the_programs_own_may_fail():
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="a fault"):
        torch.compile(lambda x: x + 1, backend=broken)(X)
    with torch._dynamo.config.patch(suppress_errors=True):
        assert torch.equal(torch.compile(lambda x: x + 1, backend=broken)(X), X + 1)


# --- state that comes into being later


class Holder:
    pass


def changes_of():
    """(a function, what changes between its calls) for each way to ask for what may be missing."""
    holder, layer, module = Holder(), nn.Linear(2, 2), type(sys)("module")
    for owner in (holder, layer, module):
        yield lambda x, o=owner: x + getattr(o, "late", 1), lambda o=owner: setattr(o, "late", 5)
        yield lambda x, o=owner: x + (2 if hasattr(o, "later") else 1), lambda o=owner: setattr(o, "later", 5)

    def swallows(x):
        try:
            return x + holder.latest
        except Exception:
            return x

    yield swallows, lambda: setattr(holder, "latest", 5)

    def counted(x):
        return x + getattr(counted, "late", 1)

    yield counted, lambda: setattr(counted, "late", 5)

    def kept(x):
        return x + kept.factor

    kept.factor = 1
    yield kept, lambda: setattr(kept, "factor", 5)


@pytest.mark.parametrize("case", range(9))
def test_attributes_that_come_later_are_noticed(case):
    f, change = list(changes_of())[case]
    fast = torch.compile(f)
    before = f(X)
    for _ in range(3):
        assert torch.equal(fast(X), before)
    change()
    after = f(X)
    assert not torch.equal(before, after)
    for _ in range(3):
        assert torch.equal(fast(X), after)


def test_functions_that_count_their_calls():
    def f(x):
        f.calls = getattr(f, "calls", 0) + 1
        return x + f.calls

    fast = torch.compile(f)
    assert [fast(X)[0, 0].item() - X[0, 0].item() for _ in range(4)] == [1, 2, 3, 4]


def test_members_of_enums_may_hold_what_changes():
    import enum

    class Mode(enum.Enum):
        FAST = [1]

    fast = torch.compile(lambda x: x + Mode.FAST.value[0])
    assert torch.equal(fast(X), X + 1)
    Mode.FAST.value[0] = 5
    assert torch.equal(fast(X), X + 5)


def test_modules_get_their_shapes_before_they_are_compiled():
    for make in (lambda: nn.LazyLinear(3), lambda: nn.Sequential(nn.LazyLinear(3), nn.ReLU())):
        for fullgraph in (False, True):
            model = make()
            fast = torch.compile(model, fullgraph=fullgraph)
            for _ in range(3):
                assert torch.equal(fast(X), model(X)) and fast(X).shape == (3, 3)
            assert compiled_of(fast).entries
    lazy = nn.LazyLinear(3)
    fast = torch.compile(lambda x: lazy(x) * 2)
    assert torch.equal(fast(X), lazy(X) * 2)


def test_keys_that_are_tensors_are_the_programs():
    (key,) = torch.compile(lambda x: {x: 1})(X)
    assert key is X


def test_arguments_that_hold_themselves():
    ring = [1]
    ring.append(ring)
    fast = torch.compile(lambda x, r: x + r[1][1][0])
    assert torch.equal(fast(X, ring), X + 1) and "holds itself" in compiled_of(fast).reason


def test_calls_pass_on_what_they_are_given():
    def f(x, *more, scale=1, **rest):
        return x * scale, len(more), sorted(rest)

    fast = torch.compile(f)
    for stance in ("default", "force_eager"):
        with torch.compiler.set_stance(stance):
            for _ in range(3):
                y, count, names = fast(X, 1, 2, scale=3, other=4)
                assert torch.equal(y, X * 3) and (count, names) == (2, ["other"])
                assert torch.equal(fast(x=X)[0], X)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        fast()


def test_errors_of_functions_that_run_as_written_come_through():
    def f(x):
        if x is None:
            raise KeyError("mine")
        print(end="")
        return x

    fast = torch.compile(f)
    fast(X), fast(X)
    assert compiled_of(fast).direct is f
    with pytest.raises(KeyError, match="mine"):
        fast(None)


def test_a_compiled_function_is_collected():
    import gc
    import weakref

    def make():
        def f(x):
            return x + 1

        fast = torch.compile(f)
        fast(X), fast(X)
        f.itself = fast  # a cycle through what the call holds
        return weakref.ref(compiled_of(fast))

    gone = make()
    gc.collect()
    assert gone() is None


def test_graph_modules_inside_of_a_program():
    class Around(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))

        def forward(self, x):
            return self.inner(x) + 1

    x, around = torch.ones(3, 4), Around()
    assert torch.compile(around, fullgraph=True)(x).tolist() == around(x).tolist()


_WAYS: dict = {}


@functools.lru_cache
def table_of(n):
    return torch.arange(n).float() + 1


@functools.lru_cache
def factor_of(n):
    return 2 * n


def way_of(x):
    """How to compute for a class of tensors: found out once for each."""
    if type(x) not in _WAYS:
        _WAYS[type(x)] = torch.sin
    return _WAYS[type(x)]


def test_what_is_kept_of_earlier_calls():
    """Caches of functions and tables that a first call fills belong to no graph."""

    def f(x):
        return way_of(x)(x) * factor_of(3) + table_of(x.shape[-1])

    fast = torch.compile(f, fullgraph=True)
    table_of.cache_clear(), _WAYS.clear()
    for x in (X, X, X[:1], 2 * X):
        assert fast(x).tolist() == (torch.sin(x) * 6 + torch.arange(x.shape[-1]).float() + 1).tolist()
    assert type(table_of(X.shape[-1])) is torch.Tensor
    assert list(_WAYS) == [torch.Tensor]
    assert compiled_of(fast).entries


def test_tables_that_grow_with_every_call_end_a_graph():
    calls: dict = {}

    def f(x):
        calls[len(calls)] = None
        return x + 1

    fast = torch.compile(f, fullgraph=True)
    assert fast(X).tolist() == (X + 1).tolist()
    assert list(calls) == [0]
    with pytest.raises(torch._dynamo.exc.Unsupported, match="changes calls"):
        fast(X)
    assert list(calls) == [0]
