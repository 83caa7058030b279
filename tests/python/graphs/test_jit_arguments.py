"""What scripted functions and methods take when Python calls them: checked and converted by their schema."""

import enum
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union  # noqa: UP035

import pytest

import rushlight as torch
from rushlight import Tensor, nn


class Color(enum.Enum):
    RED = 1


class Pair(NamedTuple):
    count: int
    value: Tensor


def of_int(v: int):
    return v


def of_float(v: float):
    return v


def of_bool(v: bool):
    return v


def of_str(v: str):
    return v


def of_complex(v: complex):
    return v


def of_optional(v: Optional[int]):  # noqa: UP045
    return v


def of_ints(v: List[int]):  # noqa: UP006
    return v


def of_tensors(v: list[Tensor]):
    return v


def of_dict(v: Dict[str, Tensor]):  # noqa: UP006
    return v


def of_floats_by_number(v: dict[int, float]):
    return v


def of_tuple(v: Tuple[int, Tensor]):  # noqa: UP006
    return v


def of_union(v: Union[int, str]):  # noqa: UP007
    return v


def of_number(v: Union[int, float, complex]):  # noqa: UP007
    return v


def of_device(v: torch.device):
    return v


def of_color(v: Color):
    return v


def of_pair(v: Pair):
    return v


def of_any(v: Any):
    return v


def of_nothing_said(v):
    return v


TENSOR = torch.ones(2)
CONVERTED = [
    (of_int, True, 1), (of_int, torch.tensor(3), 3), (of_int, torch.tensor(2.5), 2), (of_float, 2, 2.0),
    (of_float, torch.tensor(1.5), 1.5), (of_bool, 2, True), (of_bool, None, False), (of_str, b"a", "a"),
    (of_complex, 1.5, 1.5 + 0j), (of_optional, None, None), (of_optional, torch.tensor(3), 3),
    (of_ints, (1, 2), [1, 2]), (of_ints, range(2), [0, 1]), (of_ints, [True, torch.tensor(4)], [1, 4]),
    (of_tensors, (), []), (of_floats_by_number, {1: 2}, {1: 2.0}), (of_floats_by_number, [(1, 2)], {1: 2.0}),
    (of_union, 1, 1), (of_union, "a", "a"), (of_number, 1j, 1j), (of_color, Color.RED, Color.RED),
    (of_device, torch.device("cpu"), torch.device("cpu")), (of_any, "a", "a"), (of_nothing_said, None, None),
]  # fmt: skip
REFUSED = [
    (of_int, 1.5), (of_int, "a"), (of_int, None), (of_int, TENSOR), (of_int, 2**70), (of_float, "1.5"),
    (of_float, None), (of_float, 1j), (of_bool, "a"), (of_bool, [1]), (of_str, 1), (of_str, None),
    (of_complex, "1"), (of_optional, 1.5), (of_ints, [1.5]), (of_ints, "12"), (of_ints, None),
    (of_ints, [None]), (of_tensors, TENSOR), (of_tensors, [1]), (of_tensors, None), (of_dict, [1]),
    (of_dict, "abc"), (of_dict, None), (of_dict, {1: TENSOR}), (of_dict, {"a": 1}), (of_tuple, (1,)),
    (of_tuple, (1, 2)), (of_tuple, 3), (of_union, 1.5), (of_union, None), (of_number, "1"),
    (of_nothing_said, 1),
    (of_number, TENSOR), (of_device, 0), (of_color, 1), (of_pair, (1,)), (of_nothing_said, [TENSOR]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "given", "wanted"), CONVERTED)
def test_arguments_become_values_of_their_types(function, given, wanted):
    got = torch.jit.script(function)(given)
    assert got == wanted and type(got) is type(wanted)
    if isinstance(wanted, list) and wanted:
        assert {type(v) for v in got} == {int}


def test_what_is_of_the_type_passes_as_it_is():
    for function, value in [(of_tuple, (1, TENSOR)), (of_nothing_said, nn.Parameter(TENSOR))]:
        assert torch.jit.script(function)(value) is value
    for function, value in [(of_tensors, [TENSOR]), (of_dict, {"a": TENSOR}), (of_ints, [1])]:
        given = torch.jit.script(function)(value)
        assert given is not value and type(given) is type(value)
        assert next(iter(given)) is next(iter(value))
    pair = torch.jit.script(of_pair)((2, TENSOR))
    assert type(pair) is Pair and pair.count == 2 and pair.value is TENSOR


@pytest.mark.parametrize(("function", "given"), REFUSED)
def test_other_values_are_refused(function, given):
    with pytest.raises(
        RuntimeError, match=rf"{function.__name__}\(\) Expected a value of type .* for argument 'v'"
    ):
        torch.jit.script(function)(given)


def test_the_words_of_a_refusal():
    with pytest.raises(RuntimeError) as error:
        torch.jit.script(of_dict)(["a"])
    assert str(error.value).startswith(
        "of_dict() Expected a value of type 'Dict[str, Tensor]' for argument 'v' but instead found type "
        "'list'.\nPosition: 0\nValue: ['a']\nDeclaration: of_dict(Dict(str, Tensor) v) -> Dict(str, Tensor)"
    )
    with pytest.raises(
        RuntimeError, match="Inferred 'v' to be of type 'Tensor' because it was not annotated"
    ):
        torch.jit.script(of_nothing_said)("a")
    with pytest.raises(RuntimeError, match=r"found type 'Pair \(aka NamedTuple\(count, value\)\)'"):
        torch.jit.script(of_int)(Pair(1, TENSOR))


def several(x, n: int = 2, *, k: float):
    return x * n + k


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        (
            (),
            {},
            r"missing value for argument 'x'\. Declaration: several\(Tensor x, int n=2, \*, float k\)",
        ),
        ((TENSOR,), {}, "is missing value for argument 'k'"),
        ((TENSOR, 1, 2.0), {}, r"takes 2 positional argument\(s\) but 3 was/were given"),
        (
            (TENSOR,),
            {"k": 1.0, "z": 1},
            "Unknown keyword argument 'z' for operator 'several'. Schema: several",
        ),
        (
            (TENSOR,),
            {"k": 1.0, "x": TENSOR},
            "Argument 'x' specified both as positional and keyword argument",
        ),
        ((TENSOR, 1), {"n": 3, "k": 1.0, "z": 0}, r"expected at most 3 argument\(s\) but received 5"),
        ((TENSOR,), {"k": "a"}, r"type 'float' for argument 'k' but instead found type 'str'.\nPosition: 2"),
    ],
)
def test_arguments_that_do_not_bind(args, kwargs, words):
    scripted = torch.jit.script(several)
    with pytest.raises(RuntimeError, match=words):
        scripted(*args, **kwargs)
    assert scripted(TENSOR, k=1).tolist() == [3, 3] and scripted(TENSOR, 1, k=1).tolist() == [2, 2]


class Scaled(nn.Module):
    def forward(self, x, n: int = 1):
        return x * n

    @torch.jit.export
    def named(self, s: str):
        return s


def test_methods_check_their_arguments(tmp_path):
    scripted = torch.jit.script(Scaled())
    torch.jit.save(scripted, tmp_path / "scaled.pt")
    for module in (scripted, torch.jit.load(tmp_path / "scaled.pt")):
        assert module(TENSOR, n=True).tolist() == [1, 1] and module.named("a") == "a"
        with pytest.raises(RuntimeError, match=r"forward\(\) Expected a value of type 'int' .*\nPosition: 2"):
            module(TENSOR, "a")
        with pytest.raises(RuntimeError, match="'Tensor.* for argument 'x' but instead found type 'str'"):
            module("a")
        with pytest.raises(RuntimeError, match=r"forward\(\) is missing value for argument 'x'"):
            module()
        with pytest.raises(RuntimeError, match="for argument 's' but instead found type 'int'"):
            module.named(1)


def test_a_saved_function_checks_its_arguments(tmp_path):
    torch.jit.save(torch.jit.script(several), tmp_path / "several.pt")
    loaded = torch.jit.load(tmp_path / "several.pt")
    assert loaded(TENSOR, k=1).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="for argument 'n' but instead found type 'str'"):
        loaded(TENSOR, "a", k=1.0)


def test_a_trace_takes_the_kinds_of_values_that_it_saw():
    traced = torch.jit.trace(lambda xs, d: xs[0] + d["a"], ([torch.zeros(2)], {"a": TENSOR}))
    assert traced([TENSOR], {"a": TENSOR}).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match=r"Expected a value of type 'List\[Tensor\]'"):
        traced(TENSOR, {"a": TENSOR})


def test_an_error_of_the_function_itself_is_not_taken_for_one_of_the_call():
    def wrong(x):
        return x.view(1, 2, 3, "a")

    with pytest.raises(RuntimeError, match="operation failed in the TorchScript interpreter") as caught:
        torch.jit.script(wrong)(TENSOR)
    assert isinstance(caught.value.__cause__, TypeError)


def commented(x, n, flag):
    # type: (Tensor, int, bool) -> Tensor
    return x if flag else x * n


def commented_one_by_one(
    x,  # type: Tensor
    n,  # type: List[int]
):
    # type: (...) -> Tensor
    return x * n[0]


def test_types_in_comments():
    assert str(torch.jit.script(commented).schema) == "commented(Tensor x, int n, bool flag) -> Tensor"
    with pytest.raises(RuntimeError, match="'int' for argument 'n'"):
        torch.jit.script(commented)(TENSOR, "a", True)
    assert torch.jit.script(commented_one_by_one)(TENSOR, [3]).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match=r"'List\[int\]' for argument 'n'"):
        torch.jit.script(commented_one_by_one)(TENSOR, 3)


def test_defaults_are_of_the_argument_type():
    def none(n: int = None):  # noqa: RUF013
        return n

    def number(n: str = 1):
        return n

    def mutable(n: List[int] = [1]):  # noqa: B006, UP006
        return n

    def converted(n: float = 1, names: List[int] = (1, 2)):  # noqa: UP006
        return n, names

    for program in (none, number):
        with pytest.raises(RuntimeError, match='Expected a default value of type .* on parameter "n"'):
            torch.jit.script(program)
    with pytest.raises(RuntimeError, match="Mutable default parameters are not supported"):
        torch.jit.script(mutable)
    got = torch.jit.script(converted)()
    assert got == (1.0, [1, 2]) and type(got[0]) is float


def extends(items: list[int], more: dict[str, list[int]]):
    items.append(1)
    more["a"].append(1)
    return len(items)


class Adds(nn.Module):
    def forward(self, items: list[int]):
        items.append(2)
        return len(items)


class Shares(nn.Module):
    def __init__(self):
        super().__init__()
        self.adds = Adds()

    def forward(self, items: list[int]):
        self.adds(items)
        return items


def test_scripts_do_not_change_lists_of_the_program():
    items, more = [0], {"a": [0]}
    assert torch.jit.script(extends)(items, more) == 2
    assert items == [0] and more == {"a": [0]}
    assert torch.jit.script(Shares())(items) == [0, 2] and items == [0]
