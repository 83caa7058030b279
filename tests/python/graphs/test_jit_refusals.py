"""What scripts refuse when they are made, in PyTorch's words."""

import io
import pickle
from collections import OrderedDict
from typing import Any, NamedTuple

import pytest

import rushlight as torch
from rushlight import nn


def too_large():
    return 0x8000000000000000


def smallest():
    return -9223372036854775808, 9223372036854775807


def lists(x):
    return [[x]] + [[1]]


def unknown_result(x):
    return x.max(dim=1).unknown


def unwraps_none() -> int:
    return torch.jit._unwrap_optional(None)


def helper():
    return 3


def unpacks_function():
    a, b = helper
    return a


def gets_nothing(x):
    return x.__getitem__()


def zips_nothing():
    for _ in zip():
        pass


def counts_nothing():
    for _ in range():
        pass


def counts_fractions():
    for i in range(1, 0.5):
        print(i)


def identity_of_number():
    return id(2)


class Defaults(NamedTuple):
    x: torch.Tensor = torch.ones(2)


def takes_defaults(x: Defaults):
    return x


def bare_tuple(x: Any):
    if isinstance(x, tuple):
        a, b = x
        return a
    return 0


def keys_of_text():
    a = dict()  # noqa: C408
    a[1] = torch.ones(1)
    return a


def mutable_default(x=(1, [])):
    return x


def too_many_types(a):
    # type: (int, int) -> int
    return a


def optional_by_comment(x, y):
    # type: (Optional[int], Optional[int]) -> None
    if x is None or y is None:
        print(x + y)


def starred_alone(x):
    a = (x, x)
    (*b,) = a
    return b


def index_of_two_types(n: int):
    a = (0, 1.5)
    return a[n]


def class_as_value():
    return io.BytesIO


def unknown_word():
    return torch.LongTensor(hello="1")


scripted = torch.jit.script(nn.Linear(2, 2))


def calls_outside(x):
    return scripted(x)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (too_large, "out of range"), (lists, "previously matched to type"),
        (unknown_result, "object has no attribute or method 'unknown'"),
        (unwraps_none, "could not be inferred from actual type None"),
        (unpacks_function, "function cannot be used as a tuple"),
        (gets_nothing, "expected exactly 1 argument"),
        (zips_nothing, "zip expected at least 1 arguments, got 0"),
        (counts_nothing, "range expected at least 1 arguments, got 0"),
        (counts_fractions, "all inputs of range must be ints, found float in argument 1"),
        (identity_of_number, "Expected a value of type 'Optional.AnyClassType.'"),
        (takes_defaults, "Tensors are not supported as default NamedTuple fields"),
        (bare_tuple, "Provided tuple is not fully defined/refined"),
        (keys_of_text, "(?s)Arguments for call are not valid.*a.1. = torch.ones.1.\n    ~{20} <--- HERE"),
        (mutable_default, "Mutable default parameters"),
        (too_many_types, r"(?s)annotations \(2\) did not .* parameters \(1\).*too_many_types\(a\):\n~+ <-"),
        (starred_alone, "may only appear on the lhs within the presence of another non-starred expression"),
        (index_of_two_types, "because we cannot resolve the output type"),
        (class_as_value, "python value of type 'type' cannot be used as a value"),
        (unknown_word, "Legacy tensor constructors have no argument hello"),
        (optional_by_comment, "Arguments for call are not valid"),
        (calls_outside, "Cannot call a ScriptModule that is not a submodule of the caller"),
    ],
)  # fmt: skip
def test_functions_are_refused(function, words):
    with pytest.raises((RuntimeError, ValueError), match=words):
        torch.jit.script(function)


def test_the_largest_numbers_are_taken():
    assert torch.jit.script(smallest)() == smallest()


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.ReLU(), nn.ReLU()])

    def forward(self, x):
        for i, layer in zip(range(2), self.layers):
            x = layer(x) * i
        return x


class VaryingLength(Layers):
    def forward(self, x):
        for i, layer in zip(range(int(x)), self.layers):
            x = layer(x) * i
        return x


class VaryingList(Layers):
    def forward(self, x, numbers: list[int]):
        for layer, i in zip(self.layers, numbers):
            x = layer(x) * i
        return x


class WithoutSelf(nn.Module):
    @torch.jit.ignore
    def ask():  # noqa: N805
        return 1

    def forward(self):
        return self.ask()


class Reassigns(nn.Module):
    def forward(self, x):
        for _ in range(2):
            self = x
        return self


class ReassignsValue(nn.Module):
    def forward(self, x):
        for _ in range(2):
            x = self
        return x


class AsksByValue(nn.Module):
    def forward(self, name: str):
        return hasattr(self, name)


class OnlySetstate(nn.Module):
    @torch.jit.export
    def __setstate__(self, state):
        self.training = state[0]

    def forward(self, x):
        return x


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (VaryingLength(), "does not have a statically determinable length"),
        (VaryingList(), "does not have a statically determinable length"),
        (WithoutSelf(), "does not have a self argument"),
        (OnlySetstate(), "needs __getstate__"),
        (Reassigns(), "Cannot re-assign 'self'"),
        (ReassignsValue(), "Cannot re-assign 'x' to a value of type module"),
        (AsksByValue(), "hasattr's second argument must be a string literal"),
    ],
)
def test_modules_are_refused(module, words):
    with pytest.raises(RuntimeError, match=words):
        torch.jit.script(module)
    assert torch.jit.script(Layers())(torch.ones(1)).item() == 0


def test_operators_in_place_of_classes():
    class Counter:
        def __init__(self):
            self.count = 1

        def __iadd__(self, x: int):
            self.count += x
            return self

    class Named:
        def __init__(self, counter: Counter):  # a name of this function alone
            self.counter = counter

    torch.jit.script(Counter)
    torch.jit.script(Named)

    def adds():
        a = Counter()
        a += 2
        return a.count

    def subtracts():
        a = Counter()
        a -= 2
        return a.count

    assert torch.jit.script(adds)() == 3
    with pytest.raises(
        RuntimeError, match="Cannot emit inplace op on .*Counter since it does not define an __isub__"
    ):
        torch.jit.script(subtracts)


class Described(NamedTuple):
    x: int | None = None
    y: list[int] = [1, 2]
    z: dict[str, int] | None = {"a": 1}  # noqa: RUF012


def test_named_tuples_in_graphs_and_signatures():
    def takes(value: Described):
        return value

    text = "NamedTuple(x : int? = None, y : int[] = [1, 2], z : Dict(str, int)? = {a: 1})"
    made = torch.jit.script(takes)
    assert text in str(made.graph) and text in str(made.schema)


def test_dictionaries_in_an_order():
    def ordered():
        a = OrderedDict()
        a["one"] = torch.ones(1)
        return len(a)

    assert torch.jit.script(ordered)() == 1


def test_sources_below_something():
    def text():
        found = """
      one
   two
"""
        # further left than the function
        return found

    assert torch.jit.script(text)() == text()

    def refused(x: int):
        print("""
  first""")
        return x.upper()

    with pytest.raises(RuntimeError, match=r"(?s)return x.upper\(\)\n {15}~{7,9} <--- HERE"):
        torch.jit.script(refused)


def test_types_of_lists_in_isinstance():
    def count(a: list[int] | None) -> int:
        found = 0
        if isinstance(a, (int, (float,), list, str)):
            found += 1
        if isinstance(a, list[int]):
            found += 1
        return found

    assert torch.jit.script(count)([3, 4]) == 2 and torch.jit.script(count)(None) == 0


def test_results_in_brackets_in_comments():
    def added(x):
        # type: (int) -> (int)
        return x + 1

    assert str(torch.jit.script(added).schema) == "added(int x) -> int"


def test_functions_are_not_pickled():
    with pytest.raises(pickle.PickleError, match="ScriptFunction cannot be pickled"):
        pickle.dumps(torch.jit.script(helper))


def test_definitions_are_checked():
    made = torch.jit.ScriptModule()
    with pytest.raises(RuntimeError, match="Tensor cannot be used as a tuple"):
        made.define("def forward(self, x):\n    a, *b = torch.neg(x)\n    return a\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a, *b, *c = [1, 2, 3]", "Only one starred expression is allowed on the lhs"),
        ("for *a in [1, 2]:\n        pass", "A Starred expression may only appear on the lhs"),
    ],
)
def test_stars_that_python_refuses(text, words):
    with pytest.raises(RuntimeError, match=words):
        torch.jit.CompilationUnit(f"def f():\n    {text}\n    return 1\n")
