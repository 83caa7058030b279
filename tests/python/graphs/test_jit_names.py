"""`torch.jit.script`: names, annotations, classes, texts and the words of its errors."""

import enum
import io
from typing import Dict, List, Optional, Tuple, Union  # noqa: UP035

import pytest

import rushlight as torch
from rushlight import Tensor, nn

# ruff: noqa: UP006, UP007, UP045


def doubled(x: int) -> int:
    return x * 2


def by_type(x: Union[int, List[int], None]):
    if x is None:
        return 0
    if isinstance(x, int):
        return x + 1
    return x[0]


@torch.jit.interface
class Doubling(nn.Module):
    def double(self, x: Tensor) -> Tensor: ...


def _syntax(name):
    return getattr(torch.jit.frontend, name)


def test_scripted_classes_keep_to_the_syntax():
    @torch.jit.script
    class Good:
        def __init__(self, x: int):
            self.x: int = x

        def get(self):
            return self.x

    assert Good(2).get() == 2

    class Annotates:
        def __init__(self, x: int):
            self.x = x

        def set(self, x: int):
            self.x: int = x

    class Yields:
        def items(self):
            yield 1

    with pytest.raises(ValueError, match="must be declared in __init__, not 'set'"):
        torch.jit.script(Annotates)
    with pytest.raises(_syntax("UnsupportedNodeError"), match="Yield aren't supported"):
        torch.jit.script(Yields)


def test_interfaces_optionals_and_declarations():
    def uses(m: Doubling, x: Tensor):
        return m.double(x)

    class Doubles(nn.Module):
        @torch.jit.export
        def double(self, x):
            return x * 2

    assert torch.jit.script(uses)(torch.jit.script(Doubles()), torch.ones(1)).tolist() == [2]
    with pytest.raises(RuntimeError, match="the value is not a TorchScript compatible type"):
        torch.jit.script(uses)(Doubles(), torch.ones(1))

    def unwrapped(x: Optional[int]):
        return torch.jit._unwrap_optional(x) + 1

    assert torch.jit.script(unwrapped)(2) == 3
    with pytest.raises(RuntimeError, match="Unwrapping null optional"):
        torch.jit.script(unwrapped)(None)

    def declared_twice(x: int):
        if x > 1:
            x: int = 3
        return x

    def wrong_elements():
        found: List[int] = [1, "a"]
        return found

    with pytest.raises(RuntimeError, match="Attempting to declare and annotate the type of variable 'x'"):
        torch.jit.script(declared_twice)
    with pytest.raises(RuntimeError, match="list elements, which were unified to Union.int, str."):
        torch.jit.script(wrong_elements)


def test_graphs_show_the_types_of_arguments():
    graph = torch.jit.script(by_type).graph
    assert "%x.1 : Union(int[], int, NoneType)" in str(graph)
    assert next(graph.inputs()).type().annotation_str == "Union[List[int], int, NoneType]"


def test_texts_name_what_stands_around_them():
    factor = torch.jit.script(doubled)
    unit = torch.jit.CompilationUnit("""
    def f(x: Dict[str, int], n: int = 2) -> List[int]:
        found: List[int] = []
        for v in x.values():
            found.append(factor(v) + g(n))
        return found

    def g(n):
        # type: (int) -> int
        return n
    """)
    assert unit.f({"a": 1}) == [4] and str(unit.f.schema) == "f(Dict(str, int) x, int n=2) -> int[]"
    assert factor is not None
    with pytest.raises(RuntimeError, match="'int' for argument 'n' but instead found type 'str'"):
        unit.g("a")
    for text, words in [
        ("def f(x):\n    return not_there(x)", "undefined value not_there"),
        (
            "def f(x: int):\n    return x[0]",
            "'int' object is not subscriptable:\n  File \"<string>\", line 2",
        ),
        ("def f(x: Missing):\n    return x", "Unknown type name 'Missing'"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            torch.jit.CompilationUnit(text)
    resolved = torch.jit.CompilationUnit()
    resolved.define("def f(x: int):\n    return twice(x)", {"twice": doubled}.get)
    assert resolved.f(3) == 6


def test_containers_without_their_parts():
    for kind in (List, Dict, Tuple, Optional):
        with pytest.raises(RuntimeError, match=f"Attempted to use {kind._name} without"):
            torch.jit.isinstance([1], kind)

    def keyed(x: Dict[Union[int, str], int]):
        return x

    with pytest.raises(RuntimeError, match="Cannot create dict for key type 'Union.int, str.'"):
        torch.jit.script(keyed)
    with pytest.raises(
        RuntimeError, match=r"Expected a member of Union\[List\[int\], int, NoneType\] but .* str"
    ):
        torch.jit.script(by_type)("a")


def inner(x):
    return x.foo()


def outer(x):
    return inner(x)


def test_errors_say_who_called():
    with pytest.raises(RuntimeError) as error:
        torch.jit.script(outer)
    text = str(error.value)
    assert text.startswith("'Tensor (inferred)' object has no attribute or method 'foo'.:\n")
    _, called = text.split("'inner' is being compiled since it was called from 'outer'\n")
    assert "    return inner(x)\n" in called and called.count("HERE") == 1


def test_literals_against_their_annotations():
    def keys():
        x: Dict[int, str] = {"a": "b"}
        return x

    def values():
        x: Dict[str, int] = {"a": "b"}
        return x

    def wide():
        x: Dict[str, Optional[int]] = {"a": None, "b": 1}
        return x

    for program in (keys, values):
        with pytest.raises(
            RuntimeError, match=f"the type of {program.__name__} given by the dict literal is str"
        ):
            torch.jit.script(program)
    assert torch.jit.script(wide)() == {"a": None, "b": 1}


def repeated(x, sizes):
    # type: (Tensor, Optional[BroadcastingList2[int]]) -> Tensor
    return x


def test_lists_that_a_number_stands_for():
    scripted = torch.jit.script(repeated)
    assert scripted(torch.ones(1), 2).tolist() == scripted(torch.ones(1), [2, 3]).tolist() == [1]


def test_modules_that_have_another_one_scripted():
    class Plain(nn.Module):
        def forward(self, x):
            return x + 1

    class Wrapped(nn.Module):
        def forward(self, x):
            return (lambda y: y)(x)

        def __prepare_scriptable__(self):
            return Plain()

    assert torch.jit.script(nn.Sequential(Wrapped()))(torch.ones(1)).tolist() == [2]


def test_annotations_by_names_of_the_enclosing_function():
    from collections import namedtuple

    alias, Point = Union[int, str], namedtuple("Point", "x y")  # noqa: PYI024

    def local(x: alias, p: Point):
        return p.x

    assert str(torch.jit.script(local).schema).startswith("local(Union(int, str) x, ")

    def without_result(x, n):
        # type: (Tensor, int)
        return x * n

    assert str(torch.jit.script(without_result).schema) == "without_result(Tensor x, int n) -> Tensor"


def test_hashes_and_enumerations():
    class Level(enum.IntEnum):
        HIGH = 3

    def same(a: int, b: int):
        return hash(a) == hash(b)

    def version():
        return torch.__version__.partition("+")[0]

    assert torch.jit.script(version)() == str(torch.__version__).partition("+")[0]
    assert torch.jit.script(same)(2, 2) and torch.jit.script(Level) is Level


def test_slices_as_values():
    def every_second(x: List[int]):
        return x[slice(0, 4, 2)]

    def by_word(x: List[int]):
        return x[slice(1, stop=2)]

    scripted = torch.jit.script(every_second)
    assert scripted([1, 2, 3, 4, 5]) == [1, 3] and str(scripted.schema).endswith("-> int[]")
    with pytest.raises(RuntimeError, match="Slice does not accept any keyword arguments"):
        torch.jit.script(by_word)


def test_futures_in_annotations():
    def waits(x: torch.jit.Future[int]):
        return torch.jit.wait(x) + 1

    assert torch.jit.script(waits)(torch.jit.fork(int, 2)) == 3
    with pytest.raises(RuntimeError, match=r"'Future\[int\]' for argument 'x' but instead found type 'int'"):
        torch.jit.script(waits)(3)


def test_a_parametrized_module_is_refused_as_it_is_saved():
    module = torch.jit.script(torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 3)))
    with pytest.raises(RuntimeError, match="ParametrizedLinear is a class made while the program ran"):
        torch.jit.save(module, io.BytesIO())
