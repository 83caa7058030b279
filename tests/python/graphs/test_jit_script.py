"""`torch.jit.script`: modules and functions compiled from their source."""

import copy
import math
import pickle
import types
from typing import Optional

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

SCALE, FLOAT = 2.5, torch.float64
LIMITS = types.ModuleType("limits")  # constants of modules, which scripts may name
LIMITS.IMAGINARY, LIMITS.LEAST = complex(0, math.inf), -math.inf


def shifted(x, n: int = 2):
    for i in range(n):
        x = F.relu(x) + i
    return x


class Block(nn.Module):
    repeats: torch.jit.Final[int] = 3

    def __init__(self):
        super().__init__()
        self.linear, self.activation = nn.Linear(4, 4), F.gelu

    def inner(self, x):
        if x.sum() > 0:
            return self.activation(self.linear(x))
        return x * 2.5

    def forward(self, x, bias: Optional[torch.Tensor] = None):  # noqa: UP045
        """Some text."""
        found = []
        for _ in range(self.repeats):
            found.append(self.inner(x))
        y = torch.stack(found).mean(0)
        if bias is not None:
            y = y + bias
        return shifted(y, n=3) + math.sqrt(4.0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(Block(), nn.ReLU())
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.rnn = nn.LSTM(4, 3, batch_first=True)
        self.register_buffer("shift", torch.ones(4))
        self.table = {"a": 1, "b": [2.0, None]}

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        out, (h, _) = self.rnn(self.body(x)[None])
        return out, {"h": h, "shift": self.shift}

    @torch.jit.export
    def twice(self, x):
        return self.body(self.body(x)) * self.table["a"]


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net()


def test_a_scripted_module_is_and_does_what_the_module_does(net):
    scripted = torch.jit.script(net)
    assert isinstance(scripted, torch.jit.ScriptModule) and isinstance(
        scripted.layers[0], torch.jit.ScriptModule
    )
    assert isinstance(scripted, torch.jit.RecursiveScriptModule) and isinstance(scripted, nn.Module)
    for sign in (1, -1):  # the choice by value is kept
        x = sign * torch.ones(2, 4)
        for got, wanted in zip(scripted(x)[0], net(x)[0], strict=True):
            assert torch.equal(got, wanted)
        assert torch.equal(scripted.twice(x), net.twice(x))
    assert list(scripted.state_dict()) == list(net.state_dict())
    assert scripted.layers[0].weight is net.layers[0].weight
    assert scripted.original_name == "Net" and type(scripted).__name__ == "RecursiveScriptModule"
    assert repr(scripted.body[0]) == (
        "RecursiveScriptModule(\n  original_name=Block\n"
        "  (linear): RecursiveScriptModule(original_name=Linear)\n)"
    )
    assert repr(torch.jit.script(nn.ModuleList([nn.ReLU(), nn.ReLU()]))) == (
        "RecursiveScriptModule(\n  original_name=ModuleList\n"
        "  (0): RecursiveScriptModule(original_name=ReLU)\n"
        "  (1): RecursiveScriptModule(original_name=ReLU)\n)"
    )
    assert torch.jit.script(scripted) is scripted


def test_training_through_a_script(net):
    scripted = torch.jit.script(net)
    optimizer = torch.optim.SGD(scripted.parameters(), lr=0.1)
    before = net.rnn.weight_ih_l0.detach().clone()
    scripted(torch.ones(2, 4))[0].sum().backward()
    optimizer.step()
    assert not torch.equal(before, net.rnn.weight_ih_l0)
    assert scripted.train(False).body.training is False


def test_code_and_graph(net):
    scripted = torch.jit.script(net.body[0])
    assert "torch.stack(found).mean(0)" in scripted.code and "Some text" not in scripted.code
    assert "__torch__.shifted(y, n=3) + math.sqrt(4.0)" in scripted.code
    graph = scripted.graph
    kinds = [node.kind() for node in graph.nodes()]
    assert "prim::Loop" in kinds and "prim::If" in kinds and "aten::stack" in kinds
    assert graph.findNode("aten::stack").output().uses()[0].user.kind() == "aten::mean"
    assert len(graph.findAllNodes("prim::CallMethod")) == 1
    assert str(graph).startswith(
        "graph(%self : __torch__.Block,\n      %x.1 : Tensor"
    ) and "return (%" in str(graph)
    assert [v.type().kind() for v in graph.inputs()][1] == "TensorType"
    assert isinstance(graph, torch.Graph) and next(graph.outputs()).type() == torch.TensorType.get()
    assert [v.debugName() for v in graph.inputs()] == ["self", "x.1", "bias.2"]


def test_functions():
    scripted = torch.jit.script(shifted)
    x = torch.randn(3)
    assert torch.equal(scripted(x), shifted(x)) and torch.equal(scripted(x, n=0), x)
    assert isinstance(scripted, torch.jit.ScriptFunction) and scripted.name == "shifted"
    assert "for i in range(n)" in scripted.code
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor .inferred.' for argument 'x'"):
        scripted(3)


def test_scripts_know_that_they_are():
    def where(x):
        if torch.jit.is_scripting():
            return x + 1
        return x

    assert where(torch.zeros(())) == 0 and torch.jit.script(where)(torch.zeros(())) == 1


def test_functions_that_stay_python(tmp_path):
    seen = []

    class Watched(nn.Module):
        @torch.jit.ignore
        def watch(self, x):
            seen.append(x.shape)

        @torch.jit.unused
        def never(self, x):
            return x

        def forward(self, x):
            self.watch(x)
            return x

        @torch.jit.export
        def wrong(self, x):
            return self.never(x)

    scripted = torch.jit.script(Watched())
    scripted(torch.ones(2))
    assert seen == [(2,)]
    with pytest.raises(RuntimeError, match="torch.jit.unused"):
        scripted.wrong(torch.ones(1))


def test_modules_that_inherit_from_script_module():
    class Scaled(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.full((2,), 3.0))

        @torch.jit.script_method
        def forward(self, x):
            return x * self.weight

    assert Scaled()(torch.ones(2)).tolist() == [3, 3] and "x * self.weight" in Scaled().code


def bad_lambda(x):
    return (lambda y: y)(x)


def bad_try(x):
    try:
        return x
    except ValueError:
        return x


def bad_arguments(*x):
    return x[0]


def bad_value(x):
    return x + LOCK  # noqa: F821


def bad_constant(x):
    return x * SCALE


def bad_dtype(x):
    return x.to(FLOAT)


def bad_name(x):
    return x + not_there  # noqa: F821


LOCK = object()


@pytest.mark.parametrize(
    "function, error, words",
    [
        (bad_lambda, torch.jit.frontend.NotSupportedError, "Lambda aren't supported"),
        (bad_try, torch.jit.frontend.NotSupportedError, "try blocks aren't supported"),
        (bad_arguments, torch.jit.frontend.NotSupportedError, "variable number of arguments"),
        (bad_constant, RuntimeError, "python value of type 'float' cannot be used as a value"),
        (bad_dtype, RuntimeError, "python value of type 'dtype' cannot be used as a value"),
        (bad_value, RuntimeError, "python value of type 'object' cannot be used as a value"),
        (bad_name, RuntimeError, "undefined value not_there"),
    ],
)
def test_refusals_say_where(function, error, words):
    with pytest.raises(error, match=words) as caught:
        torch.jit.script(function)
    assert f"line {function.__code__.co_firstlineno}" in str(caught.value) or "line" in str(caught.value)
    assert __file__ in str(caught.value)


def test_attributes_that_a_script_cannot_have():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.lock, self.unseen = object(), object()

        def forward(self, x):
            return self.lock

    with pytest.raises(RuntimeError, match="failed to convert Python type: 'object'"):
        torch.jit.script(Odd())

    class Missing(nn.Module):
        def forward(self, x):
            return self.nothing

    with pytest.raises(RuntimeError, match="Module 'Missing' has no attribute 'nothing'"):
        torch.jit.script(Missing())


def test_copies(net):
    scripted = torch.jit.script(net)
    copied = copy.deepcopy(scripted)
    x = torch.ones(2, 4)
    assert torch.equal(copied(x)[0], scripted(x)[0]) and copied.shift is not scripted.shift
    with torch.no_grad():
        copied.layers[0].weight.zero_()
    assert net.layers[0].weight.any()
    with pytest.raises(pickle.PickleError, match="ScriptModules cannot be"):
        pickle.dumps(scripted)


def test_freeze(net):
    scripted = torch.jit.script(net)
    with pytest.raises(RuntimeError, match="eval mode"):
        torch.jit.freeze(scripted)
    with pytest.raises(RuntimeError, match="expects a ScriptModule"):
        torch.jit.freeze(net)
    frozen = torch.jit.freeze(scripted.eval())
    assert not list(frozen.parameters()) and not frozen.state_dict()
    x = torch.ones(2, 4)
    assert torch.equal(frozen(x)[0], scripted(x)[0])
    assert torch.equal(torch.jit.optimize_for_inference(scripted)(x)[0], scripted(x)[0])


def test_constants_that_are_not_finite(tmp_path):
    def clip(x, least: float = -math.inf):
        y = torch.where(x > math.inf, math.nan, x.clamp(min=least))
        return y.masked_fill(x < 0, LIMITS.LEAST), math.isnan(math.nan), LIMITS.IMAGINARY

    scripted, x = torch.jit.script(clip), torch.tensor([-1.0, 2.0, math.inf])
    torch.jit.save(scripted, tmp_path / "clip.pt")
    for f in (scripted, torch.jit.load(tmp_path / "clip.pt")):
        y, is_nan, imaginary = f(x)
        assert y.tolist() == [-math.inf, 2.0, math.inf] and is_nan and imaginary == complex(0, math.inf)
        assert f(x, least=3.0)[0].tolist() == [-math.inf, 3.0, math.inf]


def test_compilation_unit():
    unit = torch.jit.CompilationUnit(
        """
        def f(x):
            return g(x) + 1
        def g(x):
            return torch.relu(x)
        """
    )
    assert unit.f(torch.tensor([-1.0, 2.0])).tolist() == [1, 3]
    assert unit.find_function("h") is None


CHECKS = False


def _only_in_python(x):
    try:
        return x + 1
    except ValueError:
        return x


def test_branches_that_no_script_takes():
    """What a script never runs may call Python, as libraries write their checks."""

    def guarded(x, flag: bool = False):
        if not torch.jit.is_scripting():
            assert callable(x.abs) and _only_in_python(x)
        if torch.jit.is_scripting():
            return x * 2
        with torch.no_grad():
            return _only_in_python(x)

    def by_constants(x, stable: bool):
        if stable or not CHECKS or torch.jit.is_tracing():
            return x.sort(stable=stable)[0] if torch.jit.is_scripting() else _only_in_python(x)
        return _only_in_python(x)

    def by_types(x: torch.Tensor, y: torch.Tensor | None, names: list[str], n: int = 1):
        if not isinstance(x, torch.Tensor) or isinstance(n, (str, float)):
            raise TypeError(f"{_only_in_python(x)}")
        if not (isinstance(names, list) and x is not None):
            return _only_in_python(x)
        return x + n if y is None else x + y

    x = torch.tensor([3.0, 1.0, 2.0])
    assert torch.jit.script(guarded)(x).tolist() == [6.0, 2.0, 4.0]
    assert torch.jit.script(by_constants)(x, True).tolist() == [1.0, 2.0, 3.0]
    scripted = torch.jit.script(by_types)
    assert scripted(x, None, ["a"]).tolist() == [4.0, 2.0, 3.0]
    assert scripted(x, x, ["a"]).tolist() == [6.0, 2.0, 4.0]

    def reassigned(x: torch.Tensor, flag: bool):
        if flag:
            x = [x]
        return _only_in_python(x) if isinstance(x, list) else x

    def unknown(x, flag: bool):
        if flag and torch.jit.is_scripting():
            return _only_in_python(x)
        return x

    for program in (reassigned, unknown):
        with pytest.raises(torch.jit.frontend.NotSupportedError, match="try blocks"):
            torch.jit.script(program)


def test_scripts_warn_and_take_generators(tmp_path):
    import warnings

    def checked(xs: list[torch.Tensor]):
        if not all(x.dim() == 1 for x in xs):
            warnings.warn("not all are vectors")
        return len(xs)

    scripted = torch.jit.script(checked)
    torch.jit.save(scripted, tmp_path / "checked.pt")
    for f in (scripted, torch.jit.load(tmp_path / "checked.pt")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert f([torch.ones(2)]) == 1
        with pytest.warns(UserWarning, match="not all are vectors"):
            f([torch.ones(2, 2)])


@pytest.mark.parametrize("text", ["x = 1", "def f(x):\n    return x\nf(1)", "class C:\n    pass", "def f(x:"])
def test_compilation_unit_of_what_is_no_function(text):
    with pytest.raises(RuntimeError, match="expected def|cannot be read"):
        torch.jit.CompilationUnit(text)


class NamedOtherwise(torch.nn.Module):
    """Nothing says that a method's first argument is called self."""

    def __init__(this):
        super().__init__()
        this.layer, this.note = torch.nn.Linear(2, 2), object()

    def forward(this, x):
        return this.layer(x)

    @torch.jit.export
    def missing(this, x):
        return this.nothing(x)

    @torch.jit.export
    def odd(this):
        return this.note


def test_the_first_argument_may_have_any_name():
    class Good(torch.nn.Module):
        def __init__(this):
            super().__init__()
            this.layer = torch.nn.Linear(2, 2)

        def forward(this, x):
            return this.layer(x)

    script = torch.jit.script(Good())
    assert [node.kind() for node in script.graph.nodes()] == ["prim::GetAttr", "prim::CallMethod"]
    with pytest.raises(RuntimeError, match="has no attribute 'no(thing|te)'"):
        torch.jit.script(NamedOtherwise())


def test_errors_in_scripts_name_the_function():
    def checks(x: int):
        assert x > 2, "too small"
        return x

    with pytest.raises(torch.jit.Error, match=r"line \d+, in checks\n[^$]*too small"):
        torch.jit.script(checks)(1)


def test_indices_as_graphs_write_them():
    class Slices(nn.Module):
        def forward(self, x):
            return x[(Ellipsis, None, slice(None, 1, None))] + x[..., :1, None]

    x = torch.arange(6.0).view(2, 3)
    for module in (Slices(), torch.fx.symbolic_trace(Slices())):
        assert torch.jit.script(module)(x).tolist() == Slices()(x).tolist()


class AsksForParts(nn.Module):
    def __init__(self, part):
        super().__init__()
        if part:
            self.part = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor):
        if hasattr(self, "part"):
            x = self.part(x)
        if hasattr(self, "other"):
            x = self.part(x, x, x)  # which it does not take
        if not hasattr(self, "part") and not hasattr(self, "other"):
            x = x + 1
        return x * 2 if not hasattr(self, "other") else self.other(x)


@pytest.mark.parametrize("part", [True, False])
def test_attributes_that_are_asked_for_may_be_missing(part):
    module, x = AsksForParts(part), torch.ones(1, 2)
    assert torch.equal(torch.jit.script(module)(x), module(x))


def test_attributes_beside_those_that_are_asked_for_may_not():
    class Lacking(nn.Module):
        def forward(self, x: torch.Tensor):
            if hasattr(self, "part"):
                x = x + 1
            return x + self.weight

    with pytest.raises(RuntimeError, match="'Lacking' has no attribute 'weight'"):
        torch.jit.script(Lacking())
