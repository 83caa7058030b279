"""Archives of PyTorch that are loaded, changed and written again: PyTorch reads what was written."""

import enum
import io
from typing import NamedTuple

import pytest

import rushlight
from rushlight._command.names import is_aliased

oracle = pytest.importorskip("torch", reason="PyTorch writes the archives")
import torchscript_programs as programs  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(is_aliased(), reason="the alias replaces PyTorch, whose archives these are"),
]


def written_again(module, change=None):
    """A module of PyTorch after Rushlight has read and written it, and what PyTorch reads of that."""
    first, second = io.BytesIO(), io.BytesIO()
    oracle.jit.save(module, first)
    first.seek(0)
    loaded = rushlight.jit.load(first)
    if change is not None:
        change(loaded)
    rushlight.jit.save(loaded, second, _extra_files={"note": b"changed"})
    second.seek(0)
    extra = {"note": ""}
    found = oracle.jit.load(second, _extra_files=extra)
    assert extra["note"] == b"changed"
    return loaded, found


def check_equal(expected, found):
    if isinstance(expected, (list, tuple)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for e, f in zip(expected, found, strict=True):
            check_equal(e, f)
    elif isinstance(expected, str):
        assert found == expected
    else:
        oracle.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["resnet", "lstm", "encoder", "control", "packed", "chosen"])
def test_results_are_those_of_before(name):
    oracle.manual_seed(0)
    module, inputs, _ = programs.programs()[name]
    scripted = oracle.jit.script(module.eval())
    _, found = written_again(scripted)
    with oracle.no_grad():
        check_equal(scripted(*inputs), found(*inputs))
    assert found.code == scripted.code
    assert {n: p.requires_grad for n, p in found.named_parameters()} == {
        n: p.requires_grad for n, p in scripted.named_parameters()
    }


def test_constants_of_frozen_modules_are_kept():
    oracle.manual_seed(0)
    module, inputs, _ = programs.programs()["resnet"]
    frozen = oracle.jit.freeze(oracle.jit.script(module.eval()))
    check_equal(frozen(*inputs), written_again(frozen)[1](*inputs))


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: list[float]


class Counted:
    def __init__(self, start: int):
        self.total = start
        self.seen: list[str] = []

    def add(self, name: str) -> int:
        self.total += 1
        self.seen.append(name)
        return self.total


class Holding(oracle.nn.Module):
    words: list[str]
    table: dict[str, list[int]]
    pair: tuple[list[int], str]
    maybe: list[float] | None

    def __init__(self):
        super().__init__()
        self.words, self.table, self.pair, self.maybe = [], {"a": [1], "b": []}, ([], "x"), None
        self.colour, self.scale = Colour.BLUE, 2.0
        self.weight = oracle.nn.Parameter(oracle.ones(2))
        self.frozen = oracle.nn.Parameter(oracle.ones(1), requires_grad=False)
        self.register_buffer("steps", oracle.tensor(3))

    def forward(self, x: oracle.Tensor):
        self.words.append("w")
        self.table["b"].append(len(self.words))
        counted = Counted(int(self.steps))
        counted.add("n")
        total = counted.add("m")
        kind = self.colour == Colour.BLUE
        return x * self.weight * self.scale, self.table["b"], self.pair[0], self.maybe is None, kind, total


def test_attributes_of_all_kinds_and_changes_of_them():
    def change(module):
        with rushlight.no_grad():
            module.weight.fill_(5)
        module.scale = 0.5
        module.maybe = [1.5]
        module.steps.add_(4)
        module.words.append("before")

    loaded, found = written_again(oracle.jit.script(Holding()), change)
    y, listed, first, missing, kind, total = found(oracle.ones(2))
    assert y.tolist() == [2.5, 2.5] and listed == [2] and first == [] and not missing and kind and total == 9
    assert found.words == ["before", "w"] and found.maybe == [1.5] and found.pair == ([], "x")
    assert not found.frozen.requires_grad and found.weight.requires_grad
    assert loaded(rushlight.ones(2))[0].tolist() == [2.5, 2.5]


def test_storages_that_were_shared_stay_shared():
    class Tied(oracle.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = oracle.nn.Linear(2, 2, bias=False)
            self.b = oracle.nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    _, found = written_again(oracle.jit.script(Tied()))
    assert found.a.weight.data_ptr() == found.b.weight.data_ptr()


def test_models_of_integers_are_written():
    module = oracle.ao.quantization.quantize_dynamic(
        oracle.nn.Sequential(oracle.nn.Linear(4, 3)), {oracle.nn.Linear}, dtype=oracle.qint8
    )
    scripted, x = oracle.jit.script(module), oracle.linspace(-1, 1, 8).reshape(2, 4)
    check_equal(scripted(x), written_again(scripted)[1](x))


def test_inside_of_a_module_of_this_program_it_is_not_written(tmp_path):
    class Outer(rushlight.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return x + 1

    oracle.jit.script(oracle.nn.Linear(2, 2)).save(tmp_path / "inner.pt")
    outer = rushlight.jit.script(Outer(rushlight.jit.load(tmp_path / "inner.pt")))
    with pytest.raises(NotImplementedError, match="save it by itself"):
        outer.save(tmp_path / "outer.pt")


def test_a_module_behind_two_names_is_written_once():
    class Twice(oracle.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = oracle.nn.Linear(3, 3)
            self.second = self.first

        def forward(self, x):
            return self.first(x) + self.second(x)

    module = oracle.jit.trace(Twice(), oracle.ones(2, 3))
    _, found = written_again(module)
    assert found.first.weight.data_ptr() == found.second.weight.data_ptr()
    check_equal(module(oracle.ones(2, 3)), found(oracle.ones(2, 3)))


@pytest.mark.parametrize("layer", ["Linear", "Conv2d"])
def test_archives_after_optimize_for_inference(layer):
    """Of linear layers they run; those of convolutions have lost their weights, which PyTorch misses, too."""
    made = oracle.nn.Linear(3, 3) if layer == "Linear" else oracle.nn.Conv2d(3, 3, 1)
    module = oracle.nn.Sequential(made, oracle.nn.ReLU()).eval()
    file, x = io.BytesIO(), oracle.rand(2, 3, 3, 3)
    oracle.jit.save(oracle.jit.optimize_for_inference(oracle.jit.script(module)), file)
    file.seek(0)
    if layer == "Linear":
        found = rushlight.jit.load(file)(rushlight.tensor(x.tolist()))
        oracle.testing.assert_close(oracle.tensor(found.tolist()), module(x).detach(), rtol=1e-4, atol=1e-5)
    else:
        with pytest.raises(RuntimeError, match="fix: save what torch.jit.freeze gives"):
            rushlight.jit.load(file)
