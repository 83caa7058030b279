"""How graphs write what scripts say: decided branches, objects, functions of Python, scripts that raise."""

from typing import Any, List, NamedTuple, Union  # noqa: UP035

import pytest

import rushlight
from rushlight import Tensor


class Point(NamedTuple):
    at: Tensor
    weight: int


class Meter:
    def __init__(self, value: Tensor):
        self.value = value


class Odd:
    def __init__(self, value: int):
        self.value = value

    def __bool__(self):
        return self.value, 2


def kinds(script):
    return [node.kind() for node in script.graph.nodes()]


@pytest.mark.parametrize("value", [3, "text"])
def test_branches_that_types_decide_are_not_in_the_graph(value):
    def told(x: int) -> str:
        if rushlight.jit.isinstance(x, (Union[str, float], List[str], str)):  # noqa: UP006, UP007
            return x + "more"
        return "number"

    def told_of_text(x: str) -> str:
        if isinstance(x, (str, float)):
            y = x + "more"
        else:
            y = "other"
        return y

    script = rushlight.jit.script(told if value == 3 else told_of_text)
    assert script(value) == ("number" if value == 3 else "textmore")
    assert "prim::If" not in kinds(script)
    assert "block0" not in str(script.graph)
    assert ("aten::add" in kinds(script)) == (value == "text")


def test_statements_behind_a_decided_return_are_not_in_the_graph():
    def told(x: Tensor, y: int):
        if isinstance(y, int):
            return x + 1
        return rushlight.relu(x)

    assert kinds(rushlight.jit.script(told)) == ["prim::Constant", "aten::add"]


def test_objects_are_made_by_their_own_nodes():
    def point(x: Tensor):
        return Point(x, 3)

    def meter(x: Tensor) -> Tensor:
        return Meter(x).value

    assert "prim::NamedTupleConstruct" in kinds(rushlight.jit.script(point))
    made = kinds(rushlight.jit.script(meter))
    assert made == ["prim::CreateObject", "prim::CallMethod", "prim::GetAttr"]
    assert rushlight.jit.script(meter)(rushlight.ones(1)).item() == 1


def test_functions_of_pythons_are_operators():
    def of_text(x: str) -> List[str]:  # noqa: UP006
        return list(x)

    def count(x: List[int]) -> int:  # noqa: UP006
        return len(x)

    assert kinds(rushlight.jit.script(of_text)) == ["aten::list"]
    assert kinds(rushlight.jit.script(count)) == ["aten::len"]


def test_a_script_that_only_raises_gives_what_it_says():
    def silent():
        raise RuntimeError("no")

    def said() -> Tensor:
        raise RuntimeError("no")

    for function, expected in ((silent, "NoneType"), (said, "Tensor")):
        (result,) = rushlight.jit.script(function).graph.outputs()
        assert str(result.type()) == expected


def test_what_scripts_refuse_of_objects_of_any_type_and_of_conditions():
    def attribute(x: Any):
        return x.value

    def condition(x: int):
        if Odd(x):
            return 1
        return 2

    def library(x: Tensor):
        rushlight.set_anomaly_enabled(True)
        return x

    with pytest.raises(RuntimeError, match="'Any' object has no attribute or method 'value'"):
        rushlight.jit.script(attribute)
    with pytest.raises(RuntimeError, match="expected a bool expression for condition"):
        rushlight.jit.script(condition)
    with pytest.raises(RuntimeError, match="may not exist or may not be currently supported in TorchScript"):
        rushlight.jit.script(library)


def test_types_of_types_ask_for_a_type():
    for made in (rushlight._C.ListType, rushlight._C.OptionalType):
        with pytest.raises(RuntimeError, match=f"Can not create {made.__name__} with None type"):
            made(None)


def test_tuples_are_taken_apart():
    def foo(a: int):
        return Point(rushlight.ones(1), a), 2

    graph = rushlight.jit.script(foo).graph
    rushlight._C._jit_pass_lower_all_tuples(graph)
    assert "TupleConstruct" not in str(graph)
    assert [str(value.type()) for value in graph.outputs()] == ["Tensor", "int", "int"]

    def swapped(x: Tensor, y: Tensor):
        (a, b), c = (x, y), x
        return b - a + c

    graph = rushlight.jit.script(swapped).graph
    rushlight._C._jit_pass_lower_simple_tuples(graph)
    assert [node.kind() for node in graph.nodes()] == ["aten::sub", "aten::add"]
    first, second = graph.inputs()
    assert list(next(graph.nodes()).inputs()) == [second, first]


def test_frozen_graphs_hold_no_tuple_that_is_taken_apart_at_once():
    class Two(rushlight.nn.Module):
        def forward(self, x):
            return x + 1, x + 2

    class Sum(rushlight.nn.Module):
        def __init__(self):
            super().__init__()
            self.two = Two()

        def forward(self, x):
            first, second = self.two(x)
            return first + second

    frozen = rushlight.jit.freeze(rushlight.jit.script(Sum()).eval())
    assert "Tuple" not in str(frozen.graph)
    assert frozen(rushlight.ones(1)).item() == 5


def test_a_future_says_of_what():
    def forward():
        return rushlight.jit.annotate(List[rushlight.jit.Future], [])  # noqa: UP006

    with pytest.raises(RuntimeError, match="Future without a contained type"):
        rushlight.jit.script(forward)
