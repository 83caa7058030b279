# ruff: noqa: UP006, UP035, UP045 - scripts are written with these types
"""Classes of the program in scripts: their types are followed, and files hold them."""

import enum
import io
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import pytest

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn import functional as F


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Word(str, enum.Enum):
    YES = "yes"
    NO = "no"


class Point(NamedTuple):
    x: Tensor
    y: int = 3


@dataclass(order=True)
class Sized:
    a: int
    b: float = 2.0
    c: int = 0

    def __post_init__(self):
        self.c = self.a * 2

    def total(self) -> float:
        return self.a + self.b + self.c


class Meter:
    def __init__(self, n: int):
        self.n = n
        self.items: List[int] = []
        self.shift = torch.full((2,), 0.5)

    def add(self, k: int) -> int:
        self.items.append(k)
        return self.n + k + len(self.items)

    @staticmethod
    def make(n: int) -> "Meter":
        return Meter(n)

    @property
    def double(self) -> int:
        return self.n * 2

    @double.setter
    def double(self, value: int):
        self.n = value // 2

    def __add__(self, other: "Meter") -> "Meter":
        return Meter(self.n + other.n)

    def __lt__(self, other: "Meter") -> bool:
        return self.n < other.n


class TooBigError(ValueError):
    pass


class Program(nn.Module):
    def __init__(self):
        super().__init__()
        self.meter = Meter(5)
        self.same = self.meter
        self.color = Color.RED
        self.point = Point(torch.ones(2))
        self.word = Word.NO

    def forward(self, x: Tensor, k: int):
        both = Meter.make(k) + self.meter
        both.add(3)
        both.double = both.double + 2
        sized = Sized(k)
        if k > 100:
            raise TooBigError("too big")
        if self.color == Color.RED:
            x = x + 1
        smallest = sorted([both, Meter(1)])[0].n
        made = Point(x * both.double + self.meter.shift, both.add(1))
        less, word = sized < Sized(k + 1), self.word == Word.NO
        return made, sized.total(), less, self.color, word, self.point.y, smallest

    @torch.jit.export
    def count(self, k: int) -> int:
        self.meter.add(k)
        return len(self.same.items)


def through_a_file(module):
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)


def plain(result):
    made, total, less, color, word, y, smallest = result
    return made.x.tolist(), made.y, total, less, color.name, color.value, word, y, smallest


def test_a_file_holds_the_classes_that_a_script_uses():
    program = Program()
    wanted = plain(program(torch.ones(2), 3))
    scripted = torch.jit.script(program)
    assert plain(scripted(torch.ones(2), 3)) == wanted
    loaded = through_a_file(scripted)
    assert plain(loaded(torch.ones(2), 3)) == wanted
    assert type(loaded.meter) is not Meter and type(loaded.meter).__name__ == "Meter"
    assert type(loaded.color) is not Color
    assert loaded.count(7) == 1 and loaded.count(8) == 2  # one object behind two names
    again = through_a_file(loaded)
    assert plain(again(torch.ones(2), 3)) == wanted
    assert again.count(9) == 3
    with pytest.raises(torch.jit.Error, match="TooBigError: too big"):
        again(torch.ones(2), 101)


def test_functions_with_classes_are_written():
    def run(k: int) -> int:
        return Meter(k).add(1)

    assert through_a_file(torch.jit.script(run))(4) == 6


def test_classes_of_equal_names_are_kept_apart():
    def make(shift: int):
        class Thing:
            def __init__(self, n: int):
                self.n = n

            def value(self) -> int:
                return self.n

        class Other:
            def __init__(self, n: int):
                self.n = n

            def value(self) -> int:
                return self.n + 100

        return (Thing if shift == 0 else Other), shift

    first, second = make(0)[0], make(1)[0]
    second.__name__ = "Thing"

    class Uses(nn.Module):
        def forward(self, k: int):
            return first(k).value(), second(k).value()

    scripted = torch.jit.script(Uses())
    assert scripted(1) == through_a_file(scripted)(1) == (1, 101)


def test_a_file_cannot_give_a_class_methods_that_python_calls_by_itself():
    scripted = torch.jit.script(Program())
    from rushlight.jit._archive import _Reader, _Writer

    content = _Writer().write(scripted)
    name = next(n for n in content["types"] if n.endswith("Meter"))
    content["types"][name]["methods"]["__del__"] = ["method", "def __del__(self):\n    pass\n"]
    with pytest.raises(RuntimeError, match="is no class that a file may hold"):
        _Reader(content, "a file")


def test_types_of_attributes_and_methods_are_followed():
    def wrong_argument(m: Meter) -> int:
        return m.add("word")

    def wrong_constructor() -> int:
        return Meter(1.5).n

    def wrong_result(m: Meter) -> str:
        return m.double

    def no_such_thing(m: Meter):
        return m.nothing

    def no_operator(m: Meter):
        return m * m

    def no_delitem(m: Meter):
        del m["key"]

    for function, words in (
        (wrong_argument, "Expected a value of type 'int' for argument 'k' but instead found type 'str'"),
        (wrong_constructor, "Expected a value of type 'int' for argument 'n' but instead found type 'float'"),
        (wrong_result, "annotated as having type str but is actually of type int"),
        (no_such_thing, "object has no attribute or method 'nothing'"),
        (no_operator, "object has no attribute or method '__mul__'"),
        (no_delitem, "Class does not define __delitem__"),
    ):
        with pytest.raises(RuntimeError, match=words):
            torch.jit.script(function)


def test_an_attribute_keeps_its_type():
    class Changes:
        def __init__(self, x):
            self.x = x
            self.x = 10

    with pytest.raises(RuntimeError, match="Wrong type for attribute assignment"):
        torch.jit.script(Changes)


def test_what_a_class_body_sets_is_no_attribute():
    class Holds:
        level: int = 3

        def __init__(self):
            pass

    def read():
        return Holds().level

    with pytest.raises(RuntimeError, match="has no attribute or method.*is defined as a class attribute"):
        torch.jit.script(read)


@torch.jit.interface
class Doubles:
    def twice(self, x: Tensor) -> Tensor: ...


class Does:
    def __init__(self):
        pass

    def twice(self, x):
        return x + x


class DoesNot:
    def __init__(self):
        pass

    def twice(self, x: int) -> int:
        return x


class Lacks:
    def __init__(self):
        pass

    def once(self, x):
        return x


def test_a_class_behind_an_interface_must_have_its_methods():
    def use(d: Doubles, x):
        return d.twice(x)

    def right(x):
        return use(Does(), x)

    def of_other_types(x):
        return use(DoesNot(), x)

    def missing(x):
        return use(Lacks(), x)

    assert torch.jit.script(right)(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="is not compatible with interface"):
        torch.jit.script(of_other_types)
    with pytest.raises(RuntimeError, match="does not have method 'twice'"):
        torch.jit.script(missing)
    with pytest.raises(RuntimeError, match="missing attribute n"):

        def take(m: Meter) -> int:
            return m.n

        torch.jit.script(take)(torch.ones(2))


def test_objects_are_sorted_by_their_own_order_alone():
    def sort():
        found = [Does(), Does()]
        found.sort()
        return found

    with pytest.raises(RuntimeError, match="must define a __lt__"):
        torch.jit.script(sort)


def test_a_tensor_is_no_bool():
    class Flag:
        def __init__(self, x: bool) -> None:
            self.x = x

    def make(x):
        Flag(x)

    with pytest.raises(RuntimeError, match="Expected a value of type 'bool'"):
        torch.jit.script(make)


def test_a_class_may_hold_its_own_kind():
    class Node:
        def __init__(self, value: int):
            self.value = value

        def more(self) -> "Node":
            return Node(self.value + 1)

    def run(x: int) -> Any:
        node: Optional[Node] = Node(x)
        if node is not None:
            return node.more().value
        return 0

    assert torch.jit.script(run)(3) == 4


def test_enumerations_have_values_of_one_plain_type():
    class Mixed(enum.Enum):
        ONE = 1
        TWO = "two"

    class Tensors(enum.Enum):
        ONE = torch.tensor(1)

    def mixed(x: Mixed) -> bool:
        return x == x

    def tensors():
        return Tensors.ONE

    with pytest.raises(RuntimeError, match="Could not unify type list"):
        torch.jit.script(mixed)
    with pytest.raises(RuntimeError, match="Cannot create Enum with value type 'Tensor'"):
        torch.jit.script(tensors)


def test_graphs_name_the_types_of_values():
    def run(x: Color, table: Dict[str, int], any_value: Any, m: Meter):
        names = [c.name for c in Color]
        return (
            names,
            x == Color.RED,
            table["a"] + 1,
            isinstance(any_value, Color),
            x.value,
            m.n,
            F.relu(m.shift),
        )

    text = str(torch.jit.script(run).graph)
    for line in (
        "prim::Constant[value=__torch__.test_jit_program_classes.Color.RED]()",
        "int = aten::__getitem__(%table.2",
        "bool = prim::isinstance[types=[Enum<__torch__.test_jit_program_classes.Color>]](%any_value.3)",
        "int = prim::EnumValue(%x.1)",
        'int = prim::GetAttr[name="n"](%m.4)',
        "Tensor = aten::relu(",
    ):
        assert line in text, line


def test_functions_of_the_library_say_their_types():
    def pair(x):
        values, where = F.max_pool2d(x, 2, return_indices=True)
        return F.dropout(values, p=0.5, training=False), where, F.adaptive_max_pool2d(x, [1, 1])

    def mode(x):
        return F.interpolate(x, "bad", 2.0, 4)

    assert str(torch.jit.script(pair).schema).endswith("((Tensor, Tensor, Tensor))")
    with pytest.raises(RuntimeError, match='str mode="nearest".*\n.*type .str. for argument .mode.'):
        torch.jit.script(mode)


def test_tuples_and_legacy_constructors():
    def item(a: Tuple[int, int]) -> None:
        a[0] = a[1]

    def augmented(a: Tuple[int, int]) -> None:
        a[0] += a[1]

    def constructor():
        return torch.LongTensor(1, [2])

    for function, words in (
        (item, "does not support subscripted assignment"),
        (augmented, "does not support augmented assignment"),
        (constructor, "multiple positional arguments that were not all integers"),
    ):
        with pytest.raises(RuntimeError, match=words):
            torch.jit.script(function)


doubled = torch.ops.aten.add.Tensor


def test_operators_of_torch_ops_are_called():
    def run(x):
        return torch.ops.aten.relu(x), doubled(x, x), torch.ops.aten.sum.dim_IntList(x, [0])

    scripted = torch.jit.script(run)
    loaded = through_a_file(scripted)
    for made in (scripted, loaded):
        assert [part.tolist() for part in made(torch.tensor([-1.0, 2.0]))] == [[0, 2], [-2, 4], 1]
    assert str(scripted.schema) == "run(Tensor x) -> ((Tensor, Tensor, Tensor))"
    assert "aten::relu(" in str(scripted.graph)

    def unknown(x):
        return torch.ops.aten.no_such_operator(x)

    with pytest.raises(RuntimeError, match="no_such_operator"):
        torch.jit.script(unknown)


def test_several_results_of_an_operator_have_types():
    def run(x):
        values, where = torch.topk(x, 2)
        both = torch.sort(x)
        return values, where, both.values, both[1]

    def wrong(x) -> str:
        return torch.topk(x, 2)[0]

    made = torch.jit.script(run)(torch.tensor([1.0, 3.0, 2.0]))
    assert [part.tolist() for part in made] == [[3, 2], [1, 2], [1, 2, 3], [0, 2, 1]]
    with pytest.raises(RuntimeError, match="annotated as having type str but is actually of type Tensor"):
        torch.jit.script(wrong)


def test_what_a_script_never_reaches_is_not_checked():
    def run():
        assert not torch.jit.is_scripting(), "only in Python"
        print("hello") + 2

    with pytest.raises(torch.jit.Error, match="only in Python"):
        torch.jit.script(run)()


def add_one(self, inputs: Tuple[Tensor], output: Tensor):
    return output + 1


def test_hooks_go_through_files_again():
    class Plain(nn.Module):
        def forward(self, x: Tensor):
            return x * 2

    module = Plain()
    module.register_forward_hook(add_one)
    scripted = torch.jit.script(module)
    again = through_a_file(through_a_file(scripted))
    assert scripted(torch.ones(1)).item() == again(torch.ones(1)).item() == 3


def test_layers_of_the_library_show_code_and_graph():
    scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert "self._modules['1'](input)" in scripted.code
    assert str(scripted.graph).count('prim::CallMethod[name="forward"]') == 2
    assert "linear(input, self.weight, self.bias)" in getattr(scripted, "0").code
    assert "aten::linear" in str(getattr(scripted, "0").graph)
    with pytest.raises(AttributeError, match="has no method 'nothing' in TorchScript"):
        scripted._unit("nothing")


class Coder(nn.Module):
    """Exports nothing: what others call of it is compiled for them."""

    def __init__(self, shift):
        super().__init__()
        self.weight, self.shift = nn.Parameter(torch.full((2,), 3.0)), shift

    def encode(self, x):
        return self.shifted(x) * self.weight

    def shifted(self, x):
        return x + self.shift


class Coders(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.others = Coder(1), nn.ModuleList([Coder(2), Coder(3)])

    def forward(self, x):
        x = self.first.encode(x)
        for other in self.others:
            x = other.shifted(x)
        return x


class Outer(nn.Module):
    def __init__(self, coders):
        super().__init__()
        self.coders = coders

    def forward(self, x):
        return self.coders.first.encode(x)


def test_methods_that_are_called_on_submodules_are_compiled(tmp_path):
    x = torch.ones(2)
    assert torch.jit.script(Coders())(x).tolist() == [11.0, 11.0]
    apart = Coders()
    apart.first = torch.jit.script(apart.first)  # when nobody had asked for its methods yet
    assert torch.jit.script(apart)(x).tolist() == [11.0, 11.0]
    script = torch.jit.script(Outer(Coders()))
    torch.jit.save(script, tmp_path / "outer.pt")
    assert torch.jit.load(tmp_path / "outer.pt")(x).tolist() == script(x).tolist() == [6.0, 6.0]


def test_a_submodule_without_the_method_is_refused():
    class Wrong(nn.Module):
        def __init__(self):
            super().__init__()
            self.coder = Coder(1)

        def forward(self, x):
            return self.coder.decode(x)

    with pytest.raises((RuntimeError, AttributeError), match="decode"):
        torch.jit.script(Wrong())(torch.ones(2))
