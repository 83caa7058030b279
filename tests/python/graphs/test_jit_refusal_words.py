"""Words of refusals: of calls, of type comments, of texts that cannot be read, of overloads."""

import enum
import shutil
from collections import namedtuple
from typing import Any, List  # noqa: UP035

import pytest

import rushlight as torch
from rushlight import nn

Pair = namedtuple("Pair", ["value"])  # noqa: PYI024 - without types


def misses_what_comes_first(x):
    return torch.sum(foo=4)


def annotates_turns():
    return torch.jit.annotate(int, [x for x in [1, 2]])  # noqa: C416


def asks_a_module():
    return shutil.abcd


class Colour(enum.Enum):
    RED = 1


def asks_an_enumeration(x: Colour):
    return x == Colour.PURPLE


def number_in_pair():
    return Pair(1)


def two_lines(
    a,  # type: Tensor
    b,
):
    # type: (int, int) -> Tensor
    return a + b


def one_missing(
    a,  # type: Tensor
    b,
):
    # type: (...) -> Tensor
    return a + b


@torch.jit._overload
def without_body(x: int) -> int: ...


@torch.jit._overload
def without_body(x: str) -> str:  # noqa: F811
    pass


def calls_without_body():
    return without_body(0)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (misses_what_comes_first, "Argument self not provided"),
        (annotates_turns, "Expected an annotation of type List"),
        (asks_a_module, "object has no attribute abcd"),
        (asks_an_enumeration, "'Colour' has no attribute 'PURPLE'"),
        (number_in_pair, r"type 'Tensor \(inferred\)' for argument 'value' but instead found type 'int'"),
        (two_lines, "Return type line"),
        (one_missing, r"Number of type annotations \(1\)"),
        (calls_without_body, 'Implementation for the function "without_body" is missing'),
    ],
)
def test_functions_are_refused(function, words):
    with pytest.raises(RuntimeError, match=words):
        torch.jit.script(function)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(x):\n    #type: (int) -> int\n    return x", "The annotation prefix in line 2 is probably"),
        ("def f(x):\n    a, b += x\n    return a", "augmented assignment can only have one LHS expression"),
        ("def f(x):\n    x + 1 = x\n    return x", "unexpected expression"),
        ("def f(x):\n    a, *1 = (3, 4)\n    return x", "Cannot pack a tuple into a non-variable"),
        ("def f(x):\n    print('\n a')\n    return x", "expected a valid token"),
        ("def f(x):\n    return [x x]", "expected ]"),
        ("def f(x: Tuple[3 + 4, Tensor]):\n    return x", r"Expression of type \+ cannot be used"),
        ("def f(x: Tuple[int, int][int]):\n    return x", "Subscripted type must be a type identifier"),
        ("def g(x, *, y):\n    return x\ndef f(x):\n    return g(x, x)", "Argument y not provided"),
    ],
)
def test_texts_are_refused(text, words):
    with pytest.raises(RuntimeError, match=words):
        torch.jit.CompilationUnit(text)


class Sum:
    def __init__(self):
        self.n = 1


class Adds(nn.Module):
    def __init__(self):
        super().__init__()
        self.sum = Sum()

    def forward(self):
        self.sum += Sum()
        return self.sum


class WithoutMethod(nn.Module):
    @torch.jit._overload_method
    def forward(self, x: int):
        pass


def test_modules_are_refused():
    with pytest.raises(RuntimeError, match="Cannot emit inplace op"):
        torch.jit.script(Adds())
    with pytest.raises(RuntimeError, match='Implementation for the method ".+forward" is missing'):
        torch.jit.script(WithoutMethod())


@torch.jit.ignore
def first_of(x, *more):
    return more[0] if more else x


def calls_with_more(x, y):
    return first_of(x), first_of(x, y)


def test_functions_of_python_take_any_number():
    assert torch.jit.script(calls_with_more)(torch.ones(1), torch.zeros(1))[1].item() == 0


def twice(x):
    return 2 * x


def test_defined_methods_name_what_stands_around():
    class Defined(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.define("def forward(self, x):\n    return twice(x)")

    assert Defined()(torch.ones(1)).item() == 2


def divides(x: int, y: float):
    return divmod(x, y)


def test_division_by_zero_is_named():
    assert torch.jit.script(divides)(7, 2.0) == (3.0, 1.0)
    with pytest.raises(RuntimeError, match=r"ZeroDivisionError: float divmod\(\)"):
        torch.jit.script(divides)(7, 0.0)


@torch.jit.script
class Plain:
    def __init__(self):
        self.n = 1


@torch.jit.script
class TypedExit:
    def __init__(self):
        self.n = 1

    def __enter__(self):
        return self.n

    def __exit__(self, kind: Any, value: int, trace: int):
        self.n = 2


def within_plain(x: Plain):
    with x as _:
        pass


def within_typed(x: TypedExit):
    with x as _:
        pass


def within_text():
    with "text" as _:
        pass


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (within_plain, "does not define __enter__ and __exit__ methods"),
        (within_typed, "argument 2 of __exit__ must have Any type"),
        (within_text, "must return an object"),
    ],
)
def test_what_is_no_context_is_refused(function, words):
    with pytest.raises(RuntimeError, match=words):
        torch.jit.script(function)


def looks_up():
    return [4, 1].index(5)


def sorts(values: List[Any]):  # noqa: UP006
    values.sort()
    return values


def goes_through(x):
    n = 0
    for _ in x:
        n += 1
    return n


@pytest.mark.parametrize(
    ("function", "given", "words"),
    [
        (looks_up, (), "'5' is not in list"),
        (sorts, ([(1, 2), ("a", "b")],), "Only values of same type can be compared"),
        (goes_through, (torch.tensor(1),), "of a 0-d tensor"),
    ],
)
def test_what_fails_says_so_in_its_words(function, given, words):
    with pytest.raises(RuntimeError, match=words):
        torch.jit.script(function)(*given)
