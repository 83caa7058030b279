# ruff: noqa: UP006, UP035, UP045 - scripts are written with these types
"""Interfaces, scripted classes, and what a scripted module's attributes may become."""

import cmath
import io
import warnings
from typing import Any, Dict, List, Optional, Tuple

import pytest

import rushlight as torch
from rushlight import Tensor, nn


@torch.jit.interface
class OneTwo(nn.Module):
    def one(self, x: Tensor, y: Tensor) -> Tensor: ...

    def forward(self, x: Tensor) -> Tensor: ...


@torch.jit.interface
class Answers:
    def answer(self) -> int: ...


class Adds(nn.Module):
    @torch.jit.export
    def one(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    def forward(self, x: Tensor) -> Tensor:
        return self.one(x, x)


class Squares(Adds):
    @torch.jit.export
    def one(self, x: Any, y: Any) -> Tensor:
        return x * y


class Narrow(Adds):
    @torch.jit.export
    def one(self, x: int, y: int) -> Tensor:
        return torch.ones(x + y)


class Holds(nn.Module):
    part: OneTwo

    def __init__(self):
        super().__init__()
        self.part = Adds()
        self.other = Adds()

    def forward(self, x: Tensor) -> Tensor:
        return self.part.forward(x)


class AsksForMore(Holds):
    def forward(self, x: Tensor) -> Tensor:
        return self.part.three(x)


class Replaces(Holds):
    def forward(self, x: Tensor) -> Tensor:
        self.part = self.other
        return self.part.forward(x)


def test_a_module_behind_an_interface_can_be_replaced_by_what_fits():
    scripted, x = torch.jit.script(Holds()), torch.full((2,), 3.0)
    assert scripted(x).tolist() == [6, 6]
    scripted.part = torch.jit.script(Squares())
    assert scripted(x).tolist() == [9, 9]
    with pytest.raises(RuntimeError, match="(?s)is not compatible with interface 'OneTwo'.*one"):
        scripted.part = torch.jit.script(Narrow())
    with pytest.raises(RuntimeError, match="a ScriptModule with non-scripted module"):
        scripted.part = Adds()
    with pytest.raises(
        RuntimeError, match="__torch__.*Adds.*for field 'other', but found '__torch__.*Squares"
    ):
        scripted.other = torch.jit.script(Squares())
    scripted.other = torch.jit.script(Adds())
    with pytest.raises(RuntimeError, match="(?s)has no attribute or method 'three'.*self.part.three"):
        torch.jit.script(AsksForMore())
    assert torch.jit.script(Replaces())(x).tolist() == [6, 6]
    with pytest.raises(RuntimeError, match="does not support SetAttr on an interface type"):
        torch.jit.freeze(torch.jit.script(Replaces()).eval())


def test_arguments_that_interfaces_describe():
    def asks(x: Answers) -> int:
        return x.answer()

    class Good:
        def answer(self) -> int:
            return 3

    class Bad:
        def reply(self) -> int:
            return 3

    assert torch.jit.script(asks)(Good()) == 3
    with pytest.raises(RuntimeError, match="with interface __torch__.*Answers.*not have method 'answer'"):
        torch.jit.script(asks)(Bad())
    with pytest.raises(RuntimeError, match="does not support inheritance yet. Please directly"):

        @torch.jit.interface
        class More(nn.ReLU):
            pass


class LeftOpen(nn.Module):
    def __init__(self):
        super().__init__()
        self.found: List[int] = []
        self.table = torch.jit.annotate(Dict[str, int], {})
        self.name: Optional[str] = None

    def forward(self, x: int):
        return x


class SetsList(LeftOpen):
    def forward(self, x: List[int]):
        self.found = x
        return 1


class SetsName(LeftOpen):
    def forward(self, x: Optional[str]):
        self.name = x
        return 1


class Declared(nn.Module):
    found: List[int]

    def __init__(self):
        super().__init__()
        self.found: List[int] = []
        self.count = torch.jit.Attribute(2, int)
        self.name = torch.jit.Attribute(None, Optional[str])

    def forward(self, x: List[int]):
        self.found, self.name = x, "set"
        self.count = self.count + 1
        return self.found


class SetsOther(Declared):
    def forward(self, x: List[int]):
        self.count = "three"
        return x


def test_attributes_keep_the_type_that_they_are_declared_with():
    with pytest.warns(UserWarning, match="instance-level annotations on empty non-base types") as seen:
        torch.jit.script(LeftOpen())
    assert len(seen) == 3
    with (
        pytest.warns(UserWarning),
        pytest.raises(RuntimeError, match="(?s)set nonexistent attribute.*self.found = x"),
    ):
        torch.jit.script(SetsList())
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="Wrong type for attribute assignment"):
        torch.jit.script(SetsName())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scripted = torch.jit.script(Declared())
    assert scripted([4]) == [4] and scripted.count == 3 and scripted.name == "set"
    with pytest.raises(RuntimeError, match="Wrong type for attribute assignment. Expected int but got str"):
        torch.jit.script(SetsOther())


class Meta:
    def __init__(self, a: int):
        self.a = a

    def doubled(self) -> int:
        return self.a * 2


class Unscriptable:
    def get(self):
        yield 3


class Uses(nn.Module):
    def __init__(self, meta):
        super().__init__()
        self.meta = meta

    def forward(self) -> int:
        return self.meta.doubled()

    @torch.jit.ignore
    def told(self):
        return repr(self.meta.a)


def test_objects_of_the_program_as_attributes():
    scripted = torch.jit.script(Uses(Meta(4)))
    assert scripted() == 8 and scripted.told() == "4"
    with pytest.raises(RuntimeError, match="failed to convert Python type: '.*Unscriptable'"):
        torch.jit.script(Uses(Unscriptable()))
    assert torch.jit.script(Meta(1)).doubled() == 2


def test_classes_make_their_attributes_in_init():
    with pytest.raises(RuntimeError, match="(?s)object has no attribute or method 'b'.*self.b"):

        @torch.jit.script
        class Reads:
            def __init__(self, x):
                self.a = x

            def get(self):
                return self.b

    with pytest.raises(RuntimeError, match="(?s)set nonexistent attribute: b.*self.b = y"):

        @torch.jit.script
        class Sets:
            def __init__(self, x):
                self.a = x

            def set(self, y):
                self.b = y

    with pytest.raises(RuntimeError, match="assignment cannot be in a control-flow block"):

        @torch.jit.script
        class Sometimes:
            def __init__(self, x: bool):
                if x:
                    self.a = 1

    with pytest.raises(RuntimeError, match="does not support inheritance"):
        torch.jit.script(type("Derived", (Meta,), {}))


def test_types_asked_for_at_run_time():
    with pytest.warns(UserWarning, match="inner type of a container is lost"):
        assert torch.jit.isinstance([], List[int])
    with pytest.raises(RuntimeError, match="must be a type or a tuple of types"):
        torch.jit.isinstance(3, [int])

    def bare(x: Any):
        return isinstance(x, List)

    with pytest.raises(RuntimeError, match="Attempted to use List without a contained type"):
        torch.jit.script(bare)


def key_of_wrong_type(a: Dict[str, int]) -> int:
    return a[1]


def tuple_of_list():
    return tuple([1, 2])  # noqa: C409


def raises_number():
    raise 3 + 4


def keeps_exception():
    a = ValueError()
    print(a)


@torch.jit.ignore
def takes_tensor(given):
    return given


def gives_text(x):
    return takes_tensor("2")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (key_of_wrong_type, "for argument 'key' but instead found type 'int'"),
        (tuple_of_list, "cannot statically infer the expected size"),
        (raises_number, "exceptions must derive from BaseException"),
        (keeps_exception, "cannot be used as a value"),
        (gives_text, "argument 'given'"),
    ],
)
def test_more_refusals(function, words):
    with pytest.raises(RuntimeError, match=words):
        torch.jit.script(function)


def root_of(x: complex):
    return cmath.sqrt(x) + cmath.pi


class Builds(nn.Module):
    def forward(self, x):
        return torch.tensor([1.0, 2.0]) + torch.as_tensor(x) + float(torch.is_signed(x))


def test_functions_that_are_no_operators_are_found_again_in_files():
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Builds()), file)
    file.seek(0)
    assert torch.jit.load(file)(torch.ones(2)).tolist() == [3, 4]
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(root_of), file)
    file.seek(0)
    assert torch.jit.load(file)(-4 + 0j) == torch.jit.script(root_of)(-4) == cmath.pi + 2j


def test_the_handle_of_a_script():
    scripted = torch.jit.script(Adds()).eval()
    handle = scripted._c
    assert handle.qualified_name == f"__torch__.{__name__}.Adds" and handle.getattr("training") is False
    assert handle._get_method("one")(torch.ones(1), torch.ones(1)).item() == 2
    frozen = torch._C._freeze_module(handle)
    assert frozen.forward(torch.ones(1)).item() == 2


def filled_in(x, weights: Optional[Tensor] = None):
    if weights is None:
        if x.numel() > 1:
            weights = torch.tensor([1.0, 2.0])
        else:
            weights = torch.ones(1)
    return x * weights


def test_what_is_none_may_be_filled_in():
    assert torch.jit.script(filled_in)(torch.ones(2)).tolist() == [1, 2]


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((1,), 3.0))

    def forward(self, x):
        return x * self.scale


class OldStyle(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.plain, self.shift = Plain(), nn.Parameter(torch.ones(1))
        self.again = self.plain

    @torch.jit.script_method
    def forward(self, x):
        return self.plain(x) + self.helper(x)

    @torch.jit.script_method
    def helper(self, x):
        return self.again(x) * 0 + self.shift


def test_classes_that_inherit_from_script_module_are_saved(tmp_path):
    module = OldStyle()
    module.save(tmp_path / "m.pt")
    loaded = torch.jit.load(tmp_path / "m.pt")
    assert loaded(torch.ones(2)).tolist() == module(torch.ones(2)).tolist() == [4, 4]
    assert loaded.original_name == "OldStyle" and len(list(loaded.parameters())) == 2
    assert loaded.plain.scale is loaded.again.scale


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Identity()

    def forward(self, x):
        return self.part(x) * 2


def plus_one(self, given: Tuple[Tensor]) -> Tuple[Tensor]:
    return (given[0] + 1,)


def tenfold(self, given: Tuple[Tensor], result: Tensor) -> Tensor:
    return times(result, 10)


def times(x, n: int):
    return x * n


def test_hooks_go_into_files():
    module = Hooked()
    module.register_forward_pre_hook(plus_one)
    module.register_forward_hook(tenfold)
    module.part.register_forward_hook(tenfold)
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(module), file)
    file.seek(0)
    assert torch.jit.load(file)(torch.ones(1)).tolist() == module(torch.ones(1)).tolist() == [400]
    for hook in (nn.Identity(), lambda module, given: print(module)):
        module = Hooked()
        module.register_forward_pre_hook(hook)
        with pytest.raises(RuntimeError, match="save: the hook .* of Hooked"):
            torch.jit.save(torch.jit.script(module), io.BytesIO())


def lacks(given: Dict[str, int]) -> int:
    return given.pop("b")


def test_keys_that_are_missing_are_named():
    with pytest.raises(RuntimeError, match="KeyError: b"):
        torch.jit.script(lacks)({"a": 1})


class Clamped(nn.Module):
    def __init__(self):
        super().__init__()
        self.level = 1

    @property
    def positive(self) -> int:
        return self.level

    @positive.setter
    def positive(self, value: int):
        self.level = value if value > 0 else 0

    def forward(self, value: int):
        self.positive = value
        return self.positive


def test_properties_are_set_in_scripts_and_files():
    scripted = torch.jit.script(Clamped())
    assert scripted(3) == 3 and scripted(-3) == 0
    buffer = io.BytesIO()
    torch.jit.save(scripted, buffer)
    buffer.seek(0)
    loaded = torch.jit.load(buffer)
    assert loaded(3) == 3 and loaded(-3) == 0
    assert "positive" in scripted.forward.code and "value" in str(scripted.forward.graph)
    assert str(scripted.forward.schema).endswith("Clamped self, int value) -> int")


class Lists(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.ModuleList([nn.Identity(), nn.ReLU()])
        self.named = nn.ModuleDict({"a": nn.ReLU()})


def test_children_are_named_by_literals():
    class Last(Lists):
        def forward(self, x):
            return self.named["a"](self.items[-1](x))

    class TooFar(Lists):
        def forward(self, x):
            return self.items[-3](x)

    class NoSuchKey(Lists):
        def forward(self, x):
            return self.named["b"](x)

    class Variable(Lists):
        def forward(self, x, i: int):
            return self.items[i](x)

    class Key(Lists):
        def forward(self, x, key: str):
            return self.named[key](x)

    assert torch.jit.script(Last())(torch.tensor([-1.0])).item() == 0
    for module, words in (
        (TooFar(), "Index -3 out of range"),
        (NoSuchKey(), "Key Error, b"),
        (Variable(), "Expected integer literal for index"),
        (Key(), "Unable to extract string literal index"),
    ):
        with pytest.raises(RuntimeError, match=words):
            torch.jit.script(module)


def test_names_of_loops_over_modules_stay():
    class Loops(Lists):
        def forward(self, x):
            for i, (_, part) in enumerate(self.named.items()):
                x = part(x) + i
            return x + i

    assert torch.jit.script(Loops())(torch.zeros(1)).item() == 0


def test_a_list_of_modules_keeps_its_own_length():
    class Odd(nn.ModuleList):
        def __len__(self):
            return 7

    class Asks(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = Odd([nn.ReLU()])

        def forward(self, x: int) -> int:
            return len(self.parts) + x

    assert torch.jit.script(Asks())(1) == 8


def test_values_are_checked_against_types_of_graphs():
    def pair(x: int):
        return x, 1.5

    kind = next(iter(torch.jit.script(pair).graph.outputs())).type()
    torch._C._jit_assert_is_instance((1, 2.0), kind)
    with pytest.raises(RuntimeError, match="Expected a value of type"):
        torch._C._jit_assert_is_instance(("a", 2.0), kind)
