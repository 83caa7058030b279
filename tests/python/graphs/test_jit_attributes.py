"""Attributes of modules that scripts cannot use, and those that a class says they have no part in."""

import enum

import pytest

import rushlight as torch
from rushlight import nn


class Colour(enum.Enum):
    RED = 1


class Pair:
    def __init__(self, value: int):
        self.value = value


class Holds(nn.Module):
    def __init__(self, held):
        super().__init__()
        self.held = held

    def forward(self):
        return self.held


ONLY = "Only tensors and .possibly nested. tuples of tensors, lists, or dicts .* got value of type"


@pytest.mark.parametrize(
    ("held", "kind", "words"),
    [
        (object, "type", f"{ONLY} type"), (Colour, "enum.Enum", f"{ONLY} Enum"),
        ({1, 2}, "set", f"{ONLY} set"), (len, "builtin_function_or_method", ONLY),
        ([nn.ReLU()], "list", "Could not infer type of list element: Cannot infer concrete type"),
        ({"a": nn.ReLU()}, "dict", "Cannot infer concrete type of torch.nn.Module"),
        ([1, "a"], "list", "List inputs .* must have consistent element type. Found int and str"),
        ([(1, "a"), ("b", 2)], "list", r"Found Tuple\[int, str\] and Tuple\[str, int\]"),
        ({"a": 1, "b": 2.0}, "dict", "Dictionary inputs .* must have consistent type. Found int and float"),
        ([], "list", "List trace inputs must have elements"),
        ({}, "dict", "Dictionary inputs must have entries"),
        ({"a": []}, "dict", "List trace inputs must have elements"),
    ],
)  # fmt: skip
def test_attributes_without_a_type_are_refused_where_they_are_asked_for(held, kind, words):
    with pytest.raises(RuntimeError, match=f"(?s)failed to convert Python type: '{kind}.*{words}") as caught:
        torch.jit.script(Holds(held))
    assert "return self.held\n               ~~~~~~~~~ <--- HERE" in str(caught.value)


@pytest.mark.parametrize("held", [[None, 1], [torch.ones(1)], (1, "a"), Pair(2), [Pair(1)], Colour.RED])
def test_attributes_with_a_type(held):
    assert torch.jit.script(Holds(held))() is not None


def test_attributes_whose_type_is_said():
    class Says(nn.Module):
        __constants__ = ["none"]
        names: list[str]
        table: dict[str, int]

        def __init__(self):
            super().__init__()
            self.names, self.table, self.none = [], {}, []

        def forward(self) -> int:
            return len(self.names) + len(self.table) + len(self.none)

    assert torch.jit.script(Says())() == 0


def test_objects_must_fit_their_class():
    with pytest.raises(RuntimeError, match="Could not cast attribute 'value' to type int"):
        torch.jit.script(Holds(Pair("text")))


class Leaves(nn.Module):
    __jit_ignored_attributes__ = ["part", "left"]

    def __init__(self, left, kept, part):
        super().__init__()
        self.left, self.kept, self.part = left, kept, part

    def forward(self):
        return self.kept

    @torch.jit.ignore
    def asks(self) -> int:
        return self.part(self.left)


class Unscriptable(nn.Module):
    def forward(self, x: int) -> int:
        return [*iter([x])].pop()


class AsksTooMuch(Leaves):
    def forward(self) -> int:
        return self.part(self.kept)


def test_ignored_attributes_are_left_to_python():
    scripted = torch.jit.script(Leaves(1, 4, Unscriptable()))
    assert scripted() == 4 and scripted.asks() == 1
    with pytest.raises(RuntimeError, match="(?s)attribute was ignored during compilation.*self.part"):
        torch.jit.script(AsksTooMuch(1, 4, Unscriptable()))


def test_ignored_attributes_are_no_part_of_a_type(monkeypatch):
    def kind(left, kept):
        return torch.jit.script(Leaves(left, kept, None))._c._type()

    before = kind(1, 4)
    assert before == kind("text", 5) and before != kind(1, "text")
    monkeypatch.setattr(Leaves, "__jit_ignored_attributes__", ["left"])
    assert kind(1, 4) != before


def test_types_of_values():
    infer = torch._C._jit_try_infer_type
    assert infer([1, 2]).success() and str(infer([1, 2]).type()) == "List[int]"
    found = infer([1, "a"])
    assert not found.success() and "Found int and str" in found.reason()
    with pytest.raises(RuntimeError, match="(?s)the type is null.*Found int and str"):
        found.type()
    assert torch._C.InferredType("why").reason() == "why"


def test_constants_stay():
    scripted = torch.jit.script(nn.Dropout(0.5))
    with pytest.raises(RuntimeError, match="Can't set constant 'p' which has value:0.5"):
        scripted.p = 0.1
    scripted.other = 1
    assert scripted.p == 0.5 and scripted.other == 1


@torch.jit.interface
class Doubles(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Doubling(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Counting(nn.Module):
    def forward(self, x: torch.Tensor) -> int:
        return 2


class Chooses(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.parts = nn.ModuleDict({"only": part})

    def forward(self, x, key: str):
        part: Doubles = self.parts[key]
        return part.forward(x)


def test_parts_behind_an_interface_must_fit_it():
    assert torch.jit.script(Chooses(Doubling()))(torch.ones(1), "only").item() == 2
    with pytest.raises(RuntimeError, match="(?s)Attribute only is not of annotated type .*self.parts.key"):
        torch.jit.script(Chooses(Counting()))
