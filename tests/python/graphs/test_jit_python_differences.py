"""Where scripts mean something else than Python: lists for views, numbers for lists, constants, defaults."""

import dataclasses
import io
from typing import List, Optional  # noqa: UP035

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.jit.annotations import BroadcastingList2, BroadcastingList3


def read_again(program):
    file = io.BytesIO()
    torch.jit.save(program, file)
    file.seek(0)
    return torch.jit.load(file)


def test_a_number_broadcasts_to_a_list():
    @torch.jit.script
    def sizes(x: BroadcastingList3[float], y: Optional[BroadcastingList2[int]] = None):  # noqa: UP045
        return x, y

    @torch.jit.script
    def calling():
        return sizes(1.0, 4)

    for program in (sizes, read_again(sizes)):
        assert program(2.0, 1) == ([2.0, 2.0, 2.0], [1, 1])
        assert program((1.0, 2.0, 3.0), [1, 2]) == ([1.0, 2.0, 3.0], [1, 2])
        assert program(2.0, None)[1] is None
    assert calling() == ([1.0, 1.0, 1.0], [4, 4])
    with pytest.raises(RuntimeError, match="must be a positive integer"):
        torch.jit.CompilationUnit("def f(x):\n    # type: (BroadcastingListx[int]) -> int\n    return 1\n")


def test_views_of_dictionaries_are_lists():
    def views(d: dict[str, int]):
        names = d.keys()
        names.append("more")
        return names, d.values(), d.items()

    scripted = torch.jit.script(views)
    for program in (scripted, read_again(scripted)):
        assert program({"a": 1}) == (["a", "more"], [1], [("a", 1)])


def test_defaults_are_values_that_python_worked_out():
    tens = torch.tensor(10.0)

    @torch.jit.script
    def scaled(x, offset=tens + tens, times: int = 3):
        return x + offset * times

    assert scaled(torch.ones(1)).item() == 61
    assert scaled(torch.ones(1), torch.ones(1), 2).item() == 3
    assert read_again(scaled)(torch.ones(1), torch.ones(1)).item() == 4  # what no text says has to be given


@pytest.mark.parametrize("value", [True, False])
def test_branches_on_constants_of_a_module_are_one_type_each(value):
    class Either(nn.Module):
        __constants__ = ["flag"]

        def __init__(self, flag):
            super().__init__()
            self.flag = flag

        def forward(self):
            if self.flag:
                return 1
            else:
                return "2"

    scripted = torch.jit.script(Either(value))
    assert scripted() == read_again(scripted)() == (1 if value else "2")


def test_attributes_of_script_modules_are_their_values_at_once():
    class Listing(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.scale = torch.jit.Attribute(0.5, float)
            self.seen = torch.jit.Attribute([], list[str])
            assert self.scale < 1

        @torch.jit.script_method
        def forward(self, name: str):
            self.seen.append(name)
            return self.seen

    program = Listing()
    assert program("a") == ["a"] and read_again(program)("b") == ["a", "b"]


def test_methods_that_are_scripts_already_stay_those():
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU())

        @torch.jit.script_method
        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    model = Layers()
    assert torch.equal(torch.jit.script(model)(torch.ones(1, 2)), model.layers(torch.ones(1, 2)))


def test_methods_that_are_left_out_are_so_in_files_too():
    class Debugging(nn.Module):
        @torch.jit.unused
        def shown(self, x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(x.numpy())

        def forward(self, x, debug: bool):
            return self.shown(x) if debug else x

    scripted = torch.jit.script(Debugging())
    for program in (scripted, read_again(scripted), read_again(read_again(scripted))):
        assert program(torch.ones(1), False).item() == 1
        with pytest.raises(torch.jit.Error, match="annotated to be ignored and cannot be run"):
            program(torch.ones(1), True)


class Vector:
    def __init__(self, x: int):
        self.x = x

    @staticmethod
    def first(of: list["Vector"]) -> "Vector":
        return Vector(of[0].x)


def test_static_methods_name_their_class():
    @torch.jit.script
    def first():
        return Vector.first([Vector(3)]).x

    assert first() == 3


@dataclasses.dataclass
class Norm:
    x: float
    y: float
    power: dataclasses.InitVar[int] = 2
    value: torch.Tensor | None = None

    def __post_init__(self, power: int):
        self.value = torch.tensor(self.x**power + self.y**power)


def test_data_classes_pass_what_is_for_their_init_alone():
    torch.jit.script(Norm)

    @torch.jit.script
    def norm(x: float, y: float, power: int):
        return Norm(x, y, power).value

    assert norm(1.0, 2.0, 3).item() == 9


@pytest.mark.parametrize(
    ("call", "words"), [("enumerate()", "at least 1"), ("enumerate(x, 1, 2)", "at most 2")]
)
def test_arguments_of_enumerate_are_counted(call, words):
    text = f"def f(x):\n    # type: (List[int]) -> int\n    for _ in {call}:\n        pass\n    return 1\n"
    with pytest.raises(RuntimeError, match=words):
        torch.jit.CompilationUnit(text)


def test_static_methods_call_each_other_while_their_class_is_made():
    @torch.jit.script
    class Local:
        def __init__(self, x: int):
            self.x = x

        @staticmethod
        def first(of: List["Local"]) -> "Local":  # noqa: F821, UP006
            return Local(of[0].x)

        @staticmethod
        def made(x: int) -> "Local":  # noqa: F821
            return Local.first([Local(x)])

    @torch.jit.script
    def made():
        return Local.made(3).x

    assert made() == 3


def test_a_tensor_becomes_the_number_that_is_asked_for():
    def whole(x) -> int:
        return x

    @torch.jit.script
    def halves(n: int, f: float, more: Optional[int] = None):  # noqa: UP045
        return n * 2, f / 2, more

    @torch.jit.script
    def calling(x):
        return halves(x, x, x)

    program = torch.jit.script(whole)
    assert calling(torch.tensor(3)) == (6, 1.5, 3)
    for given in (program, read_again(program)):
        assert type(given(torch.tensor(3))) is int
    with pytest.raises(RuntimeError, match="of dimension other than 0 as a scalar argument"):
        program(torch.tensor([3]))
    with pytest.raises(RuntimeError, match="of type Float as an integral argument"):
        program(torch.tensor(3.5))
    with pytest.raises(RuntimeError, match="that requires grad as a scalar argument"):
        program(torch.tensor(3.0, requires_grad=True))


def test_a_tensor_is_no_number_where_a_name_is_annotated_or_a_range_begins():
    def named(x):
        y: int = x
        return y

    def counted(x):
        for _ in range(x):
            x = x + 1
        return x

    with pytest.raises(RuntimeError, match="'y' is annotated with type int but is being assigned"):
        torch.jit.script(named)
    with pytest.raises(RuntimeError, match="all inputs of range must be ints"):
        torch.jit.script(counted)
