"""`torch.jit.trace`, and scripts in files."""

import io
import os
import random
import subprocess
import sys
import warnings

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.head = nn.Sequential(nn.Linear(4 * 36, 5), nn.Tanh())
        self.note = object()

    def forward(self, x, scale):
        x = F.relu(self.norm(self.conv(x)))
        b, c, h, w = x.shape
        x = x.view(b, c * h * w).reshape(x.size(0), -1) * scale["k"] + torch.tensor(2.0)
        return self.head(x) + torch.zeros(b, 1), x[:, 1:3]


def inputs(batch):
    return torch.randn(batch, 3, 8, 8), {"k": torch.tensor(3.0)}


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Classifier().eval()


def test_a_trace_serves_other_sizes(model):
    traced = torch.jit.trace(model, inputs(2))
    assert isinstance(traced, torch.jit.TopLevelTracedModule) and isinstance(traced, torch.jit.ScriptModule)
    for batch in (1, 5):
        example = inputs(batch)
        for got, wanted in zip(traced(*example), model(*example), strict=True):
            assert torch.equal(got, wanted)
    assert repr(traced).startswith("Classifier(\n  original_name=Classifier\n  (conv): ")
    assert list(traced.state_dict()) == list(model.state_dict())
    assert "torch.nn.functional.conv2d(x, self.conv.weight, self.conv.bias" in traced.code
    assert traced.graph.findNode("aten::conv2d") is not None


def test_gradients_and_training(model):
    traced = torch.jit.trace(model.train(), inputs(2))
    before = model.norm.num_batches_tracked.item()
    example = inputs(4)
    traced(*example)[0].sum().backward()
    assert model.conv.weight.grad.any() and traced.norm.num_batches_tracked == before + 1


@pytest.mark.parametrize("restored", [False, True])
def test_layers(restored):
    torch.manual_seed(1)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    lstm = nn.LSTM(4, 5, 2)
    for module, example, other in (
        (encoder, torch.randn(2, 5, 8), torch.randn(3, 4, 8)),
        (lstm, torch.randn(6, 2, 4), torch.randn(3, 5, 4)),
    ):
        traced = torch.jit.trace(module, example)
        if restored:
            traced = torch.jit.load(io.BytesIO(traced.save_to_buffer()))
        torch.testing.assert_close(traced(other), module(other))


def test_functions(tmp_path):
    traced = torch.jit.trace(lambda x, y: (x * 2).add_(y)[0], (torch.ones(2), torch.ones(2)))
    assert isinstance(traced, torch.jit.ScriptFunction) and traced(torch.zeros(3), torch.ones(3)) == 1
    outside = torch.arange(3.0)
    traced = torch.jit.trace(lambda x: x + outside, torch.ones(3))
    traced.save(tmp_path / "f.pt")
    assert torch.jit.load(tmp_path / "f.pt")(torch.ones(3)).tolist() == [1, 2, 3]


def test_inputs_by_name_and_several_methods():
    class Two(nn.Module):
        def forward(self, x, y):
            return x - y

        def other(self, x):
            return x + torch.tensor([1.0, 2.0])

    traced = torch.jit.trace(Two(), example_kwarg_inputs={"y": torch.ones(2), "x": torch.zeros(2)})
    assert traced(x=torch.zeros(1), y=torch.ones(1)) == -1
    traced = torch.jit.trace_module(
        Two(), {"forward": (torch.ones(2), torch.ones(2)), "other": torch.ones(2)}
    )
    assert traced.other(torch.zeros(2)).tolist() == [1, 2] and traced(torch.ones(1), torch.ones(1)) == 0


def test_what_a_trace_cannot_know_is_warned_of():
    def choose(x):
        return x if x.sum() > 0 else x * 0

    with pytest.warns(torch.jit.TracerWarning, match="Converting a tensor to a Python boolean"):
        torch.jit.trace(choose, torch.ones(3), check_trace=False)
    with pytest.raises(torch.jit.TracingCheckError, match="Graphs differed across invocations"):
        torch.jit.trace(choose, torch.ones(3), check_inputs=[(-torch.ones(3),)])

    def write(x):
        x.numpy()[0] += 5
        return x + 0

    with pytest.warns(torch.jit.TracerWarning, match="does not match the corresponding output"):
        torch.jit.trace(write, torch.ones(3))
    with pytest.raises(torch.jit.TracingCheckError, match="Graphs differed across invocations"):
        torch.jit.trace(lambda x: x + random.random(), torch.ones(3))
    with pytest.raises(RuntimeError, match="Encountering a dict at the output"):
        torch.jit.trace(lambda x: {"x": x}, torch.ones(3))
    assert torch.jit.trace(lambda x: {"x": x + 1}, torch.ones(3), strict=False)(torch.ones(1))["x"] == 2
    with pytest.raises(RuntimeError, match="Only tensors"):
        torch.jit.trace(lambda x: 3, torch.ones(3))


def test_random_operators_are_not_mistaken_for_differences():
    with pytest.warns(torch.jit.TracerWarning) as told:
        traced = torch.jit.trace(nn.Dropout(0.5), torch.ones(100))
    (told,) = told
    assert "Trace had nondeterministic nodes" in str(told.message) and "dropout(" in str(told.message)
    torch.manual_seed(0)
    wanted = F.dropout(torch.ones(100), 0.5)
    torch.manual_seed(0)
    assert torch.equal(traced(torch.ones(100)), wanted)


def test_programs_know_when_they_are_traced():
    seen = []

    def f(x):
        seen.append(torch.jit.is_tracing())
        return x + 1

    torch.jit.trace(f, torch.ones(1), check_trace=False)
    assert seen == [True] and not torch.jit.is_tracing()


# --- files ---


class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        self.layers[1].weight = self.layers[0].weight
        self.register_buffer("count", torch.zeros(()), persistent=False)
        self.settings = {"scale": 2.0, "dtype": torch.float32, "names": ["a", ("b", None)]}  # not used
        self.scales, self.dtype = {"output": 2.0}, torch.float32
        self.activation = torch.tanh

    def forward(self, x):
        self.count += 1
        for layer in self.layers:
            x = self.activation(layer(x))
        return x.to(self.dtype) * self.scales["output"]


def test_files_bring_code_and_weights(tmp_path):
    scripted = torch.jit.script(Kept())
    extra = {"about.txt": ""}
    scripted.save(tmp_path / "m.pt", _extra_files={"about.txt": "hello"})
    loaded = torch.jit.load(tmp_path / "m.pt", map_location="cpu", _extra_files=extra)
    x = torch.randn(3, 2)
    assert torch.equal(loaded(x), scripted(x)) and extra == {"about.txt": b"hello"}
    assert loaded.layers[0].weight.data_ptr() == loaded.layers[1].weight.data_ptr()
    assert loaded.settings == scripted.settings and loaded.count == 1 and "count" not in loaded.state_dict()
    assert loaded.code == scripted.code and type(loaded).__name__ == "RecursiveScriptModule"
    torch.jit.save(loaded, tmp_path / "again.pt")
    assert torch.equal(torch.jit.load(tmp_path / "again.pt")(x), scripted(x))


def test_torch_load_leads_to_jit(tmp_path):
    torch.jit.script(Kept()).save(tmp_path / "m.pt")
    with pytest.warns(UserWarning, match="dispatching to 'torch.jit.load'"):
        assert isinstance(torch.load(tmp_path / "m.pt", weights_only=False), torch.jit.ScriptModule)
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="with TorchScript archives"):
        torch.load(tmp_path / "m.pt")


def test_what_cannot_be_written():
    class Asks(nn.Module):
        @torch.jit.ignore
        def ask(self, x):
            return x

        def forward(self, x):
            return helper(x)

    with pytest.raises(AttributeError, match="plain modules are saved by torch.save"):
        torch.jit.save(nn.Linear(1, 1), io.BytesIO())
    with pytest.raises(RuntimeError, match="Could not export Python function call 'helper'"):
        torch.jit.save(torch.jit.script(Asks()), io.BytesIO())


@torch.jit.ignore
def helper(x):
    return x


HOSTILE = [
    "def f(x):\n    return x.__class__",
    "def f(x):\n    return ().__class__.__bases__",
    "def f(x):\n    return torch.save(x, 'a')",
    "def f(x):\n    return torch.hub.load('x')",
    "def f(x):\n    return torch.ops.load_library('x')",
    "def f(x):\n    return torch.serialization.os.system('x')",
    "def f(x):\n    return math.__loader__",
    "def f(x):\n    return typing.sys.modules",
    "def f(x):\n    return open('x')",
    "def f(x):\n    return eval('x')",
    "def f(x):\n    return getattr(x, 'a')",
    "def f(x):\n    return __builtins__",
    "def f(x):\n    import os",
    "def f(x=open('x')):\n    return x",
    "def f(x: open('x')):\n    return y",
    "@open\ndef f(x):\n    return x",
    "def f(x):\n    return x.tofile('a')",
    "open('x')",
]


@pytest.mark.parametrize("source", HOSTILE)
def test_code_in_files_reaches_nothing_but_the_library(source):
    with pytest.raises((RuntimeError, torch.jit.frontend.NotSupportedError)):
        torch.jit._closed_source.unit_from_source("f", source, {}).function()


def test_damaged_archives_are_errors():
    whole = torch.jit.script(Kept()).save_to_buffer()
    for end in range(0, len(whole), len(whole) // 20):
        with pytest.raises((RuntimeError, EOFError)):
            torch.jit.load(io.BytesIO(whole[:end]))
    with pytest.raises(ValueError, match="does not exist"):
        torch.jit.load("/nowhere/at/all.pt")
    plain = io.BytesIO()
    torch.save({}, plain)
    plain.seek(0)
    with pytest.raises(RuntimeError, match="no TorchScript archive"):
        torch.jit.load(plain)


def test_scripts_under_the_alias(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.layer = torch.nn.Linear(4, 4)\n"
        "    def forward(self, x):\n"
        "        return torch.nn.functional.relu(self.layer(x)) + torch.einsum('ij->j', x)\n"
        "net, x = Net(), torch.ones(2, 4)\n"
        "for made in (torch.jit.script(net), torch.jit.trace(net, x)):\n"
        "    made.save(__file__ + '.pt')\n"
        "    assert torch.equal(torch.jit.load(__file__ + '.pt')(x), net(x))\n"
    )
    command = [sys.executable, "-m", "rushlight", program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_warnings_of_the_library_itself_can_be_left_out():

    def warned(module):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            torch.jit.TracerWarning.ignore_lib_warnings()
            warnings.warn_explicit("a choice by value", torch.jit.TracerWarning, "f.py", 1, module)
        return len(seen)

    assert (
        warned("program") == 1
        and warned("torch.nn.functional") == 0
        and warned("rushlight.nn.functional") == 0
    )


def test_parameters_in_lists_and_dictionaries(tmp_path):
    """Their names are no identifiers."""

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.ParameterList([torch.full((3,), 2.0), torch.ones(3)])
            self.table = nn.ParameterDict({"0": torch.ones(3), "k": torch.ones(3)})
            self.deep = nn.ModuleList([nn.ParameterList([torch.ones(3)])])

        def forward(self, x):
            return x * self.rows[0] + sum(self.rows) * self.table["0"] + self.table["k"] + self.deep[0][0]

    model, x = Holder().eval(), torch.ones(2, 3)
    traced = torch.jit.trace(model, x)
    traced.save(tmp_path / "holder.pt")
    for made in (traced, torch.jit.load(tmp_path / "holder.pt"), torch.jit.freeze(traced)):
        assert torch.equal(made(x), model(x))
    traced.rows[0].data.fill_(0)
    assert traced(x).sum().item() == 6 * 3


def test_a_variable_turns_scripts_off():
    program = (
        "import rushlight as torch, rushlight.jit._state as state\n"
        "def f(x): return x + 1\n"
        "assert torch.jit.script(f) is f and torch.jit.trace(f, torch.ones(1)) is f and not state._enabled\n"
        "state.enable(); assert torch.jit.trace(f, torch.ones(1)) is not f\n"
    )
    for value, printed in (("0", ""), ("0v", "> PyTorch JIT DISABLED\n")):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTORCH_JIT": value},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout) == (0, printed), done.stderr


@torch.jit.script_if_tracing
def absolute(x):
    if bool(x.sum() > 0):
        return x
    return -x


@torch.jit.script
def doubled(x, n: int):
    y = [x]
    for _ in range(n):
        y.append(y[-1] * 2)
    return y[0], y[-1]


class Absolute(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        if bool(x.sum() > 0):
            return x * self.weight
        return -x * self.weight


class WithScript(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.jit.script(Absolute())

    def forward(self, x):
        return self.inner(x) + absolute(x)


def test_scripts_that_a_trace_calls_decide_again(tmp_path):
    """Their choices by values were lost: the trace had what the example led to."""
    x = torch.tensor([1.0, 2.0])
    traced = torch.jit.trace(lambda x: absolute(x) * 2, x)
    assert traced(-x).tolist() == [2, 4] and traced(x).tolist() == [2, 4]
    steps = torch.jit.trace(lambda x: doubled(x, x.size(0))[1] + x, x)
    assert steps(torch.ones(3)).tolist() == [9, 9, 9]
    module = torch.jit.trace(WithScript(), x)
    assert module(-x).tolist() == [2, 4]
    assert [name for name, _ in module.named_parameters()] == ["inner.weight"]
    for number, script in enumerate((traced, module)):
        torch.jit.save(script, tmp_path / f"{number}.pt")
        again = torch.jit.load(tmp_path / f"{number}.pt")
        assert again(-x).tolist() == [2, 4]
    module(-x).sum().backward()
    assert module.inner.weight.grad.item() == 3


def test_calls_of_scripts_are_calls_in_the_graph():
    x = torch.ones(2)
    kinds = {node.kind() for node in torch.jit.trace(lambda x: absolute(x) * 2, x).graph.nodes()}
    assert "prim::CallFunction" in kinds
    kinds = {node.kind() for node in torch.jit.trace(WithScript(), x).graph.nodes()}
    assert {"prim::CallFunction", "prim::CallMethod"} <= kinds


def test_what_a_script_gives_back_is_not_what_it_took():
    """A script that returns its argument does not write to it."""

    def both(x):
        y = absolute(x)
        return y - x, x

    a, b = torch.jit.trace(both, torch.ones(2))(-torch.ones(2))
    assert a.tolist() == [2, 2] and b.tolist() == [-1, -1]


def test_hooks_of_a_script_run_once_in_a_trace():
    module = WithScript()
    seen = []
    module.inner.register_forward_hook(lambda m, i, o: seen.append(1))
    torch.jit.trace(module, torch.ones(2), check_trace=False)
    assert seen == [1]
    assert "forward" not in vars(module.inner)


def test_a_trace_within_a_trace_is_part_of_it():
    inner = torch.jit.trace(lambda x: x + torch.tensor([5.0]), torch.ones(1))
    outer = torch.jit.trace(lambda x: inner(x) * 2, torch.ones(1))
    assert outer(torch.ones(1)).tolist() == [12]


def test_a_trace_without_results_is_refused():
    with pytest.raises(RuntimeError, match="didn't return any values"):
        torch.jit.trace(lambda x: None, torch.ones(1))


def test_the_graph_of_a_trace_alone():
    graph, out = torch.jit._get_trace_graph(torch.nn.Linear(2, 3), torch.ones(1, 2))
    assert [node.kind() for node in graph.nodes()][-1] == "aten::linear" and out.shape == (1, 3)


def test_settings_of_the_executor():
    before = torch.jit.set_fusion_strategy([("STATIC", 2)])
    assert torch.jit.set_fusion_strategy(before) == [("STATIC", 2)]
    with pytest.raises(RuntimeError, match="STATIC"):
        torch.jit.set_fusion_strategy([("OTHER", 2)])
    with torch.jit.fuser("fuser1"):
        pass
    with pytest.raises(ValueError, match="unrecognized fuser"), torch.jit.fuser("fuser4"):
        pass
    assert repr(doubled.schema).startswith("doubled(Tensor x, int n) -> ")


def test_what_a_trace_gives_is_checked():
    for program, words in (
        (lambda x: (x, "a"), "Only tensors"),
        (lambda x: [[x]], "Only tensors"),
        (lambda x: {"a": [x]}, "cannot be understood by the tracer, only outputs matching"),
    ):
        with pytest.raises(RuntimeError, match=words):
            torch.jit.trace(program, torch.ones(1), strict=False)
    both = torch.jit.trace(
        lambda a, b: {a: b}, (torch.ones(1), torch.zeros(1)), strict=False, check_trace=False
    )
    ((key, value),) = both(torch.ones(2), torch.zeros(2)).items()
    assert key.tolist() == [1, 1] and value.tolist() == [0, 0]


def test_methods_tell_their_graphs():
    traced = torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))
    assert "aten::linear" in str(traced.forward.graph)

    class Scripted(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x):
            return x.mm(x)

    assert "aten::mm" in str(Scripted().forward.graph) and "mm" in Scripted().forward.code


def test_backward_hooks_are_refused():
    model = nn.Linear(2, 2)
    model.register_full_backward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="backward hooks assigned"):
        torch.jit.trace(model, torch.ones(1, 2))


def test_overloads_in_a_trace():
    def program(x):
        return torch.ops.aten.cos.default(torch.ops.aten.add.Tensor(x, 1))

    x = torch.randn(3)
    torch.testing.assert_close(torch.jit.trace(program, torch.ones(3))(x), program(x))
