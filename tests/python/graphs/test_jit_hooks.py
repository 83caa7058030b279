"""Hooks of scripted modules: those with types must go with the module's `forward`."""

import pytest

import rushlight as torch
from rushlight import nn


class Named(nn.Module):
    def forward(self, text: str) -> str:
        return self.longer(text)

    def longer(self, text: str) -> str:
        return text + "!"


def with_hooks(*hooks, before=False, module=Named):
    made = module()
    for hook in hooks:
        (made.register_forward_pre_hook if before else made.register_forward_hook)(hook)
    return made


def refused(message, *hooks, before=False, module=Named):
    with pytest.raises(RuntimeError, match=message):
        torch.jit.script(with_hooks(*hooks, before=before, module=module))


def test_signatures_of_pre_hooks():
    def other_type(self, given: tuple[int]) -> tuple[str]:
        return ("a",)

    def one_more(self, given: tuple[str], more: str) -> tuple[str]:
        return given

    def no_tuple(self, given: str) -> tuple[str]:
        return ("a",)

    def gives_a_number(self, given: tuple[str]) -> int:
        return 1

    def says_nothing(self, given: tuple[str]):
        return given

    refused("has the wrong inner types for the input tuple argument", other_type, before=True)
    refused("exactly 2 inputs but it had 3 inputs", one_more, before=True)
    refused("typed as a Tuple but found type: 'str'", no_tuple, before=True)
    refused("returned the wrong type of: 'int'", gives_a_number, before=True)
    refused("is missing a return annotation", says_nothing, before=True)


def test_a_tuple_for_an_argument_is_given_back_in_a_tuple():
    class OfTuple(nn.Module):
        def forward(self, given: tuple[int]) -> tuple[int]:
            return given

    def alone(self, given: tuple[tuple[int]]) -> tuple[int]:
        return (1,)

    def inside(self, given: tuple[tuple[int]]) -> tuple[tuple[int]]:
        return ((7,),)

    refused(r"as in: 'Tuple\[Tuple\[int\]\]'", alone, before=True, module=OfTuple)
    assert torch.jit.script(with_hooks(inside, before=True, module=OfTuple))((1,)) == (7,)


def test_signatures_of_hooks_follow_each_other():
    def pair(self, given: tuple[str], result: str) -> tuple[str]:
        return (result,)

    def of_text(self, given: tuple[str], result: str) -> str:
        return result + "?"

    refused(r"Received type: 'str'. Expected type: 'Tuple\[str\]'", pair, of_text)
    assert torch.jit.script(with_hooks(of_text))("a") == "a!?"


def test_results_of_submodules_with_hooks_may_be_of_another_type():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = with_hooks(length)

        def forward(self, text: str):
            return self.inner(text)

    def length(self, given: tuple[str], result: str) -> int:
        return len(result)

    def one_more(self, given: tuple[str], result: int) -> int:
        return result + 1

    outer = Outer()
    outer.register_forward_hook(one_more)
    assert torch.jit.script(outer)("abc") == 5


def test_names_of_hooks_are_unique():
    def longer(self, given: tuple[str], result: str) -> str:
        return result

    refused("Can't define hook: longer on class: .+ because a method or hook with that name", longer)

    def first(self, given: tuple[str], result: str) -> str:
        return result

    kept = first

    def first(self, given: tuple[str], result: str) -> str:
        return result + "."

    refused("Hook 'first' on Named has at least two different python definitions", kept, first)


def test_hooks_without_types_stay_python():
    seen = []
    module = with_hooks(lambda module, given, result: seen.append(result))
    assert torch.jit.script(module)("a") == "a!" and seen == ["a!"]
