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
