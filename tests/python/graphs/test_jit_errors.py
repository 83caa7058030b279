# ruff: noqa: UP031, F501, F507 - formatting by percent is what some of these scripts are about
"""What fails inside of scripts, when they run and when they are made."""

from typing import List, NamedTuple, Optional  # noqa: UP035

import pytest

import rushlight as torch
from rushlight import nn

HEAD = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript"


class Refused(ValueError):
    pass


def checks(x):
    assert x.numel() < 5, "too many"
    if x.numel() == 3:
        raise ValueError("bad", 3)
    if x.numel() == 2:
        raise Refused
    return x @ x


class Inner(nn.Module):
    def forward(self, x):
        return checks(x) + 1


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x)


def test_what_a_script_raises_is_an_error_of_scripts():
    scripted = torch.jit.script(checks)
    for size, text in (
        (3, "builtins.ValueError: (bad, 3)"),
        (2, f"{__name__}.Refused: "),
        (6, "RuntimeError: AssertionError: too many"),
    ):
        with pytest.raises(torch.jit.Error) as caught:
            scripted(torch.ones(size))
        assert str(caught.value).startswith(HEAD) and str(caught.value).endswith(f"\n{text}")
    assert isinstance(caught.value.__cause__, AssertionError)


def test_failures_show_each_script_they_passed():
    scripted = torch.jit.script(Outer())
    with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
        scripted(torch.ones(1, 4))
    error, text = caught.value, str(caught.value)
    assert type(error) is RuntimeError and text.startswith(HEAD) and text.count(HEAD) == 1
    marked = [
        above for above, mark in zip(text.split("\n"), text.split("\n")[1:]) if mark.endswith("<--- HERE")
    ]
    assert [line.strip() for line in marked] == [
        "return self.inner(x)",
        "return checks(x) + 1",
        "return x @ x",
    ]
    assert any("inner sizes, 4 and 1," in note for note in error.__notes__)


def test_failures_of_python_in_a_script_are_runtime_errors():
    @torch.jit.ignore
    def python(x):
        raise KeyError("lost")

    @torch.jit.script
    def calls(x):
        return python(x)

    with pytest.raises(RuntimeError, match="(?s)TorchScript interpreter.*lost") as caught:
        calls(torch.ones(1))
    assert type(caught.value) is RuntimeError and isinstance(caught.value.__cause__, KeyError)

    @torch.jit.script
    def takes(x, n: int):
        return x * n

    with pytest.raises(RuntimeError, match="^takes.. is missing value for argument 'n'"):
        takes(torch.ones(1))


def percent_words(name: str, x: float):
    return "%s is %d%% or %f" % (name, x, x)


def percent_number(name: str):
    return "%d" % name


def percent_letter(name: str):
    return "%c" % name


def percent_few(name: str):
    return "%s %s" % name


def percent_many(name: str):
    return "%s" % (name, name)


def percent_unknown(name: str):
    return "%a" % name


def percent_wide(name: str):
    return "%5s" % name


def percent_open(name: str):
    return "%s %" % name


def test_text_is_formatted_by_percent():
    assert torch.jit.script(percent_words)("x", 5.25) == percent_words("x", 5.25)
    assert "%s is %d%%" in torch.jit.script(percent_words).code
    for function, text in (
        (percent_number, "%d requires a number for formatting, but got String"),
        (percent_letter, "%c requires an int or char for formatting, but got String"),
        (percent_few, "Too few arguments for format string"),
        (percent_many, "Too many arguments for format string"),
        (percent_unknown, "The specifier %a is not supported in TorchScript format strings"),
        (percent_wide, "The specifier %5 is not supported in TorchScript format strings"),
        (percent_open, "Incomplete format specifier"),
    ):
        with pytest.raises(RuntimeError, match=text):
            torch.jit.script(function)("foo")


class Sized(NamedTuple):
    a: int
    b: float
    c: List[int]  # noqa: UP006
    d: Optional[torch.Tensor] = None  # noqa: UP045


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return Sized(1, 2.0, [3]).b", None),
        ("return Sized(c=[1], a=1, b=2.0, d=x).c", None),
        (
            "return Sized('a', 2.0, [3]).b",
            "Expected a value of type 'int' for argument 'a' but .* type 'str'",
        ),
        ("return Sized(1, 2.0).b", "Argument c not provided"),
        ("print(x, 'a', [1, 2])", None),
        ("print(x, flush=True)", "print doesn't accept any keyword arguments"),
        ("y = [1, 2, 3]\n    del y[1:]", "only support deletion at a single index"),
        ("y = [1, 2, 3]\n    del y[1]", None),
    ],
)
def test_named_tuples_and_statements_are_checked(body, words):
    text = f"def f(x: Tensor):\n    {body}\n"
    if words is None:
        torch.jit.CompilationUnit(text)
    else:
        with pytest.raises(RuntimeError, match=words):
            torch.jit.CompilationUnit(text)


def test_signatures_have_no_bodies_and_methods_have_self():
    with pytest.raises(RuntimeError, match="Only `pass` statement or `...` can be the body"):

        @torch.jit._overload
        def doubled(x: int) -> int:
            return 2 * x

    @torch.jit._overload
    def halved(x: int) -> int: ...

    with pytest.raises(RuntimeError, match="methods must have a self argument"):

        class Without(torch.jit.ScriptModule):
            @torch.jit.script_method
            def forward():
                return 3


@torch.jit.ignore
def halved(x: int) -> int:
    return x / 2  # type: ignore[return-value]


@torch.jit.ignore
def counted(x: int) -> float:
    return x


class Ignoring(torch.nn.Module):
    def forward(self, x):
        return self.described(x)

    @torch.jit.ignore
    def described(self, x) -> torch.Tensor:
        return str(x)  # type: ignore[return-value]


def test_what_python_gives_back_to_scripts_is_of_the_type_that_it_declares():
    @torch.jit.script
    def program(x: int):
        return halved(x)

    @torch.jit.script
    def converted(x: int):
        return counted(x)

    with pytest.raises(RuntimeError, match="expected value of type int for return value but instead got"):
        program(5)
    result = converted(2)
    assert type(result) is float and result == 2.0
    with pytest.raises(RuntimeError, match="expected value of type Tensor"):
        torch.jit.script(Ignoring())(torch.ones(1))
