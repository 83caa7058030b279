"""Classes that inherit from `ScriptModule`, and calls of a module's own methods."""

import pytest

import rushlight as torch
from rushlight import nn


class Base(torch.jit.ScriptModule):
    @torch.jit.ignore
    def pair(self, x, y):
        # type: (torch.Tensor, torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]
        return x + y, y

    @torch.jit.script_method
    def forward(self, x):
        return x + self.added(x)


class Complete(Base):
    @torch.jit.script_method
    def added(self, x):
        return x * x


class Other(torch.jit.ScriptModule):
    @torch.jit.script_method
    def added(self, x):
        return x


class Both(Other, Complete):
    pass


def test_methods_are_found_in_all_bases():
    x = torch.rand(3)
    assert torch.equal(Complete()(x), x + x * x) and torch.equal(Both()(x), x + x)
    with pytest.raises(RuntimeError, match="(?s)Module 'Base' has no attribute 'added'.*self.added"):
        Base()


def few(self, x):
    return self.pair(x)


def many(self, x):
    return self.pair(x, x, x)


def three(self, x):
    a, b, c = self.pair(x, x)
    return a


def number(self, x):
    return self.added(x).upper()


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (few, "Argument y not provided"),
        (many, "Expected at most 3 arguments but found 4 positional arguments"),
        (three, "need 3 values to unpack but found only 2"),
        (number, "'Tensor' object has no attribute or method 'upper'"),
    ],
)
def test_instances_are_checked_when_they_are_complete(method, words):
    members = {method.__name__: torch.jit.script_method(method)}
    with pytest.raises(RuntimeError, match=words):
        type("Wrong", (Complete,), members)()
    plain = {"added": Plain.added, "pair": Plain.pair, "forward": method}
    with pytest.raises(RuntimeError, match=words):
        torch.jit.script(type("Wrong", (nn.Module,), plain)())


class Plain(nn.Module):
    @torch.jit.ignore
    def pair(self, x, y):
        # type: (torch.Tensor, torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]
        return x + y, y

    def added(self, x):
        return x * x

    @property
    def count(self):
        return len("abc")

    def forward(self, x):
        return self.repeated(x, 3)

    def repeated(self, x, times: int) -> torch.Tensor:
        a, b = self.pair(x, x)
        return self.added(a) + b * self.count * times


def test_methods_that_call_each_other():
    x = torch.ones(2)
    assert torch.equal(torch.jit.script(Plain())(x), Plain()(x))

    class Wrong(Plain):
        def forward(self, x):
            return self.count.upper() + self.repeated(x, 1)

    with pytest.raises(RuntimeError, match="'int' object has no attribute or method 'upper'"):
        torch.jit.script(Wrong())

    class Circle(Plain):
        def forward(self, x):
            return self.repeated(x, 1)

        def repeated(self, x, times: int) -> torch.Tensor:
            return x if times == 0 else self.forward(x)

    with pytest.raises(RuntimeError, match="method 'forward' is called recursively"):
        torch.jit.script(Circle())


class Inner(nn.Module):
    def spoiled(self, x):
        return x + "text"

    def forward(self, x):
        return self.spoiled(x)


def test_errors_tell_what_called_a_method():
    with pytest.raises(RuntimeError) as caught:
        torch.jit.script(Inner())
    first, second = str(caught.value).split("'Inner.spoiled' is being compiled since it was called from ")
    assert 'x + "text"' in first and second.startswith("'Inner.forward'\n") and "self.spoiled(x)" in second


class Holder(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(2, 2)
        self.words = torch.jit.Attribute([], list[str])

    @torch.jit.script_method
    def forward(self, x):
        self.words.append("seen")
        return self.part(x)


def test_parts_of_complete_instances_are_scripts():
    made = Holder()
    assert isinstance(made.part, torch.jit.ScriptModule) and made(torch.ones(1, 2)).shape == (1, 2)
    assert made.words == ["seen"]
    with pytest.raises(RuntimeError, match="Cannot re-assign modules in a ScriptModule"):
        made.part = nn.Linear(2, 2)
    made.part = torch.jit.script(nn.Linear(2, 2))


@pytest.mark.parametrize("value", [[nn.Linear(1, 1)], int, (3, {}), object()])
def test_constants_must_be_numbers_text_or_lists_of_such(value):
    class Holds(torch.jit.ScriptModule):
        __constants__ = ["held"]

        def __init__(self):
            super().__init__()
            self.held = value

    with pytest.raises(TypeError, match=r"object in attribute 'Holds.held' is not a valid constant"):
        Holds()


@pytest.mark.parametrize("kind", [nn.Module, torch.jit.ScriptModule])
def test_attributes_of_the_class_alone_are_no_attributes(kind):
    class Counts(kind):
        count = 3

        def forward(self):
            return self.count

    with pytest.raises(RuntimeError, match="Module 'Counts' has no attribute 'count'"):
        if kind is nn.Module:
            torch.jit.script(Counts())
        else:
            type("Counts", (Counts,), {"forward": torch.jit.script_method(Counts.forward)})()
    Counts.__constants__ = ["count"]
    if kind is nn.Module:
        assert torch.jit.script(Counts())() == 3


class Imports:
    def bad(self):
        import math

        return math.pi


def makes(x) -> Imports:
    return Imports()


def test_errors_tell_what_needed_a_class():
    with pytest.raises((RuntimeError, torch.jit.frontend.FrontendError)) as caught:
        torch.jit.script(makes)
    words = str(caught.value).partition("Imports' is being compiled since it was called from 'makes'")
    assert "import statements aren't supported" in words[0] and "-> Imports:" in words[2]


class Replaces(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.held = nn.Parameter(torch.ones(2))

    @torch.jit.script_method
    def forward(self, x):
        self.held = x
        return self.held


def test_scripts_set_parameters():
    made, x = Replaces(), torch.zeros(2)
    assert made(x) is x and made.held is x and list(made.state_dict()) == ["held"]
    other = torch.jit.script(nn.Linear(2, 2))
    other.bias = x
    assert torch.equal(other(torch.zeros(1, 2)), x[None]) and other.bias is x


@torch.jit.interface
class Doubles:
    def doubled(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Doubler:
    def __init__(self):
        self.by = 2

    def doubled(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.by


class Empty:
    def __init__(self):
        self.by = 2


class HoldsDoubler(nn.Module):
    held: Doubles

    def __init__(self, held):
        super().__init__()
        self.held = held

    def forward(self, x):
        return self.held.doubled(x)


def test_objects_behind_an_interface_must_fit_it():
    assert torch.jit.script(HoldsDoubler(Doubler()))(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="is not compatible with interface __torch__"):
        torch.jit.script(HoldsDoubler(Empty()))
