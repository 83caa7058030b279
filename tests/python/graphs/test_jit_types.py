"""The types of a script: what PyTorch's compiler refuses when a script is made, and what it takes."""

import enum
import math
import typing
from collections.abc import Sequence
from typing import Any, Dict, List, Literal, NamedTuple, Optional, Tuple, Union  # noqa: UP035

import pytest

import rushlight as torch
from rushlight import Tensor, nn

# ruff: noqa: UP006, UP007, UP045, E711, RET505, SIM108, C419


class Kind(enum.Enum):
    SMALL = 1


class Pair(NamedTuple):
    count: int
    value: Tensor


def doubled(x: int) -> int:
    return x * 2


@torch.jit.interface
class Doubling(nn.Module):
    def double(self, x: Tensor) -> Tensor: ...


# --- refused: program, words of the error


def literal(x: Literal["a"]):
    return x


def sequence(x: Sequence[int]):
    return x


def any_length(x: Tuple[int, ...]):
    return x


def module_type(x: nn.Module):
    return x


def bare(x: List):
    return x


def in_optional(x: typing.Optional[Sequence[int]]):
    return x


def returned(x: int) -> str:
    return x


def two_returns(x: int):
    if x > 1:
        return 1
    return "a"


def branches(x: int):
    if x > 1:
        y = 1
    else:
        y = "a"
    return y


def one_branch(x: int):
    if x > 1:
        z = 1
    return z


def conditional(x, y: int):
    return 1 if y else x


def changed(x: int):
    y = 1
    if x > 1:
        y = 2.0
    return y


def changed_in_loop(x):
    while x.sum() < 1:
        x = 3
    return x


def none_first(x: int):
    y = None
    for i in range(x):
        y = i
    return y


def wrong_list(x: int):
    found = []
    found.append(x)
    return found


def added_list(xs: List[int]):
    found = []
    for x in xs:
        found += [x]
    return found


def wrong_item(x: Dict[str, int]):
    x["a"] = 2.5


def wrong_name(x: int):
    return doubled(x, y=2)


def wrong_count(x: int):
    return doubled(x, 2)


def missing():
    return doubled()


def wrong_type(x: str):
    return doubled(x)


def no_method(x):
    return x.foo()


def numpy_method(x):
    return x.numpy()


def method_of_number(x: int):
    return x.upper()


def no_operator(x):
    return torch.is_tensor(x)


def no_class(x):
    return torch.finfo(x.dtype).eps


def too_many(x):
    return torch.relu(x, 3)


def text_for_a_tensor():
    return torch.sum("a")


def word_unknown(x):
    return torch.relu(x, foo=1)


def unpacked(x):
    a, b = x
    return a + b


def too_short(x: Tuple[int, int]):
    a, b, c = x
    return a


def not_iterable(x: int):
    return [i for i in x]


def no_index(x: int):
    return x[0]


def text_index(x):
    return x["a"]


def out_of_range(x: Tuple[int, int]):
    return x[2]


def added_text(x: List[str]):
    return "".join(x) + 1


def optional_operand(x: Optional[Tensor]):
    return x + 1


def optional_condition(x: Optional[int]):
    return 1 if x else 2


def tensor_and_bool(x):
    return x + True


def to_list(x):
    return x.tolist()


def key_type(x: int):
    return {(x, x): 1}


def starred_list(x):
    return torch.zeros(*x.shape)


def annotated(x: int):
    y: str = x
    return y


def exception_value(x):
    y = [ValueError]
    return y


def has_attribute(x: Any):
    return hasattr(x, "a")


def unsupported_math(x: float):
    return math.hypot(x, x)


REFUSED = [
    (literal, "Unknown type constructor Literal"),
    (sequence, "Unknown type constructor Sequence"),
    (any_length, "Expression of type dots cannot be used in a type expression"),
    (module_type, "Unknown type name 'nn.Module'"),
    (bare, "Attempted to use List without a contained type"),
    (returned, "Return value was annotated as having type str but is actually of type int"),
    (two_returns, "Previous return statement returned a value of type int"),
    (branches, "Type mismatch: y is set to type int in the true branch and type str in the false branch"),
    (one_branch, "z is not defined in the false branch"),
    (conditional, "if-expression's true branch has type int but false branch has type Tensor"),
    (changed, "Variable 'y' previously had type int but is now being assigned to a value of type float"),
    (changed_in_loop, "Variable 'x' previously had type Tensor .inferred. but is now"),
    (none_first, "Variable 'y' previously had type NoneType"),
    (wrong_list, "Could not match type int to t in argument 'el'"),
    (added_list, "Arguments for call are not valid"),
    (wrong_item, "Arguments for call are not valid"),
    (wrong_name, "Keyword argument y unknown"),
    (wrong_count, "Expected at most 1 arguments but found 2 positional arguments"),
    (missing, "Argument x not provided"),
    (wrong_type, "Expected a value of type 'int' for argument 'x' but instead found type 'str'"),
    (no_method, "object has no attribute or method 'foo'"),
    (numpy_method, "object has no attribute or method 'numpy'"),
    (method_of_number, "'int' object has no attribute or method 'upper'"),
    (no_operator, "Unknown builtin op: aten::is_tensor"),
    (no_class, "Unknown builtin op: aten::finfo"),
    (too_many, "Expected at most 1 arguments but found 2 positional arguments"),
    (text_for_a_tensor, "Expected a value of type 'Tensor' for argument 'self' but instead found type 'str'"),
    (word_unknown, "Keyword argument foo unknown"),
    (unpacked, "cannot be used as a tuple"),
    (too_short, "need 3 values to unpack but found only 2"),
    (not_iterable, "'int' object is not iterable"),
    (no_index, "'int' object is not subscriptable"),
    (text_index, "indexing tensor with unsupported index type 'str'"),
    (out_of_range, "Tuple index out of range"),
    (added_text, "Arguments for call are not valid"),
    (optional_operand, "Arguments for call are not valid"),
    (optional_condition, "Could not cast value of type Optional.int. to bool"),
    (tensor_and_bool, "Arguments for call are not valid"),
    (to_list, r"Expected type hint for result of tolist\(\)"),
    (key_type, "Cannot create dict for key type"),
    (starred_list, "cannot statically infer the expected size of a list in this context"),
    (annotated, "Variable 'y' is annotated with type str but is being assigned to a value of type int"),
    (exception_value, "Python exception cannot be used as a value"),
    (has_attribute, "hasattr's first argument must be an object or NamedTuple"),
    (unsupported_math, "is currently not supported in Torchscript"),
]


@pytest.mark.parametrize(("program", "words"), REFUSED, ids=[p.__name__ for p, _ in REFUSED])
def test_what_no_run_can_do_is_refused_at_once(program, words):
    with pytest.raises(RuntimeError, match=words):
        torch.jit.script(program)


def test_part_of_an_optional_that_is_no_type():
    with pytest.raises(
        AssertionError, match="Unsupported annotation typing.Optional.*could not be resolved because"
    ):
        torch.jit.script(in_optional)


def test_an_error_shows_its_line_and_marks_the_culprit():
    with pytest.raises(RuntimeError) as error:
        torch.jit.script(no_index)
    lines = str(error.value).splitlines()
    number = no_index.__code__.co_firstlineno
    assert lines[0] == "'int' object is not subscriptable:"
    assert lines[1] == f'  File "{__file__}", line {number + 1}'
    assert lines[2:5] == ["def no_index(x: int):", "    return x[0]", "           ~~~~ <--- HERE"]


def _syntax(name):
    return getattr(torch.jit.frontend, name)


def test_syntax_outside_of_the_subset():
    def conversion(x: int):
        return f"{x!r}"

    def formatting(x: int):
        return f"{x:3d}"

    def filtered(xs: List[int]):
        return [x for x in xs if x]

    def nested(xs: List[int]):
        return [x + y for x in xs for y in xs]

    def no_value(x):
        y: int  # noqa: F842
        return x

    def expanded(x, d: Dict[str, int]):
        return torch.relu(x, **d)

    def keyword_default(x, *, n: int = 1):
        return x

    def loop_else(x):
        for i in range(3):
            x = x + i
        else:
            x = x * 2
        return x

    def in_a_dead_branch(x):
        if not torch.jit.is_scripting():
            import math  # noqa: F401
        return x

    for program, kind, words in [
        (conversion, "NotSupportedError", "Don't support conversion in JoinedStr"),
        (formatting, "NotSupportedError", "Don't support formatting in JoinedStr"),
        (filtered, "NotSupportedError", "Comprehension ifs are not supported yet"),
        (nested, "NotSupportedError", "Only a single generator is currently supported"),
        (no_value, "UnsupportedNodeError", "annotated assignments without assigned value aren't supported"),
        (expanded, "NotSupportedError", "keyword-arg expansion is not supported"),
        (keyword_default, "NotSupportedError", "keyword-only arguments with defaults"),
        (loop_else, "NotSupportedError", "else branches of for loops aren't supported"),
        (in_a_dead_branch, "UnsupportedNodeError", "import statements aren't supported"),
    ]:
        with pytest.raises(_syntax(kind), match=words):
            torch.jit.script(program)


# --- taken: program, arguments, result, and the type that is inferred


def refined(x: Optional[Tensor], n: Optional[int] = None):
    if x is None:
        x = torch.ones(2)
    assert n is not None
    return x * n


def by_type(x: Union[int, List[int], None]):
    if x is None:
        return 0
    if isinstance(x, int):
        return x + 1
    return x[0]


def both(x: Optional[int], y: Optional[int]):
    if x is not None and y is not None and x > y:
        return x
    return 0


def dead_branch(x: Tensor):
    if isinstance(x, int):
        return "".join(x)
    return x.dim()


def annotated_list(n: int):
    found: List[int] = []
    names = torch.jit.annotate(Dict[str, Optional[int]], {})
    for i in range(n):
        found.append(i)
        names[str(i)] = i
        names["none"] = None
    return found


def unrolled(x):
    for item in (x, 1, "a"):
        y = item
    return y


def optional_variable(n: int):
    y: Optional[int] = None
    for i in range(n):
        y = i
    return y


def falls_through(x: int):
    if x > 1:
        return x


def implicit(x) -> int:
    return x.sum()


def items(x: Dict[str, int]):
    total = 0
    for i, (k, v) in enumerate(x.items()):
        total += v + i + len(k)
    return total


def shapes(x):
    n, m = x.shape
    return x.view(n * m, -1).size(0)


def fields(p: Pair):
    count, value = p
    return p.value + count + p.count


def truth(xs: List[int], s: str):
    if not xs or not s:
        return 0
    return 1


def lists(n: int):
    return list(range(n)) + [1]


def choice(k: Kind):
    return k == Kind.SMALL


TAKEN = [
    (refined, (None, 3), [3.0, 3.0], "Tensor"),
    (by_type, ([4],), 4, "int"),
    (both, (3, 2), 3, "int"),
    (dead_branch, (torch.ones(2),), 1, "int"),
    (annotated_list, (2,), [0, 1], "int[]"),
    (unrolled, (torch.ones(1),), "a", "str"),
    (optional_variable, (3,), 2, "int?"),
    (falls_through, (0,), None, "int?"),
    (implicit, (torch.ones(2, dtype=torch.int64),), 2, "int"),
    (items, ({"ab": 1, "c": 2},), 7, "int"),
    (shapes, (torch.ones(2, 3),), 6, "int"),
    (fields, (Pair(2, torch.ones(1)),), [5.0], "Tensor"),
    (truth, ([1], ""), 0, "int"),
    (lists, (2,), [0, 1, 1], "int[]"),
    (choice, (Kind.SMALL,), True, "bool"),
]


@pytest.mark.parametrize(("program", "given", "wanted", "kind"), TAKEN, ids=[p.__name__ for p, *_ in TAKEN])
def test_what_types_allow_is_taken(program, given, wanted, kind):
    scripted = torch.jit.script(program)
    got = scripted(*given)
    assert (got.tolist() if isinstance(got, Tensor) and not isinstance(wanted, int) else got) == wanted
    assert str(scripted.schema).endswith(f"-> {kind}")


class Layers(nn.Module):
    def __init__(self, extra):
        super().__init__()
        self.layers, self.count, self.extra = nn.ModuleList([nn.Linear(2, 2)]), 2, extra

    def scaled(self, x, n: int):
        return x * n

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        if self.extra is not None:
            x = self.extra(x)
        return self.scaled(x, self.count)


def test_methods_know_their_module():
    for extra in (None, nn.ReLU()):
        assert torch.jit.script(Layers(extra))(torch.ones(1, 2)).shape == (1, 2)

    class Wrong(Layers):
        def forward(self, x):
            return x + self.count.upper()

    class Called(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Layers(None)

        def forward(self, x):
            return self.inner(x, 3)

    with pytest.raises(RuntimeError, match="'int' object has no attribute or method 'upper'"):
        torch.jit.script(Wrong(None))
    with pytest.raises(RuntimeError, match="Expected at most 2 arguments but found 3 positional arguments"):
        torch.jit.script(Called())


def test_functions_with_several_signatures():
    @torch.jit._overload
    def either(x: Tensor) -> Tensor: ...

    @torch.jit._overload  # noqa: F811
    def either(x: int) -> int: ...  # noqa: F811

    def either(x):  # noqa: F811
        return x + 1

    def user(x, n: int):
        return either(x), either(n)

    assert torch.jit.script(user)(torch.ones(1), 2)[1] == 3
    with pytest.raises(RuntimeError, match="cannot be directly compiled because it is overloaded"):
        torch.jit.script(either)


def test_types_as_objects():
    """`torch.ListType` and the like, which say their text as PyTorch's do."""
    assert str(torch.ListType(torch.IntType.get())) == "List[int]"
    assert torch.ListType.ofInts() == torch.ListType(torch.IntType.get())
    assert torch.OptionalType.ofTensor().getElementType() == torch.TensorType.get()
    table = torch.DictType(torch.StringType.get(), torch.FloatType.get())
    assert (str(table), table.kind()) == ("Dict[str, float]", "DictType")
    assert (str(table.getKeyType()), table.getValueType().kind()) == ("str", "FloatType")
    pair = torch.TupleType([torch.BoolType.get(), torch.DeviceObjType.get()])
    assert str(pair) == "Tuple[bool, Device]" and [e.kind() for e in pair.elements()] == [
        "BoolType",
        "DeviceObjType",
    ]
    whole = torch.IntType.get()
    assert whole.isSubtypeOf(torch.NumberType.get()) and whole.isSubtypeOf(torch.OptionalType(whole))
    assert not whole.isSubtypeOf(torch.StringType.get()) and torch.NoneType.get().isSubtypeOf(
        torch.OptionalType(whole)
    )


def with_lengths(
    x: torch.jit.annotations.BroadcastingList2[float], y: nn.common_types._size_2_t = 4
) -> float:
    return x[0] + x[1] + y[0] * y[1]


def gives_one(a: float):
    return with_lengths(a), with_lengths([a, 1.0], (2, 3)), with_lengths(a, 1)


def test_one_number_stands_for_a_list_of_a_stated_length():
    scripted = torch.jit.script(with_lengths)
    assert str(scripted.schema) == "with_lengths(float[2] x, int[2] y=[4, 4]) -> float"
    assert scripted(1.5) == 19.0 and scripted([1.0, 2.0], [1, 2]) == 5.0 and scripted((1.0, 2.0), 2) == 7.0
    with pytest.raises(RuntimeError, match=r"Expected a value of type 'List\[int\]' for argument 'y'"):
        scripted(1.5, 2.5)
    assert torch.jit.script(gives_one)(1.0) == (18.0, 8.0, 3.0)
