"""Lists and dictionaries that scripts and Python share, by `torch.jit.script` of one; lists of modules."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight import nn


@torch.jit.script
def add_number(numbers: list[int], number: int):
    numbers.append(number)


@torch.jit.script
def add_entry(entries: dict[str, int], key: str, value: int):
    entries[key] = value


def test_a_script_writes_to_a_shared_list_and_to_a_copy_of_a_plain_one():
    plain, shared = [1, 2], torch.jit.script([1, 2])
    add_number(plain, 3)
    add_number(shared, 3)
    assert plain == [1, 2] and shared == [1, 2, 3]
    assert isinstance(shared, torch._C.ScriptList)


def test_a_script_writes_to_a_shared_dict():
    shared = torch.jit.script({"a": 1})
    add_entry(shared, "b", 2)
    assert shared == {"a": 1, "b": 2} and isinstance(shared, torch._C.ScriptDict)


def test_what_is_shared_is_a_copy_of_what_was_given():
    given = [1, 2]
    torch.jit.script(given).append(3)
    assert given == [1, 2]


@pytest.mark.parametrize(
    "write",
    [
        lambda s: s.append("a"),
        lambda s: s.insert(0, "a"),
        lambda s: s.extend([4, "a"]),
        lambda s: s.__setitem__(0, 1.5),
        lambda s: s.count("a"),
        lambda s: s.remove("a"),
        lambda s: "a" in s,
    ],
)
def test_elements_of_another_type_are_refused_and_nothing_is_written(write):
    shared = torch.jit.script([1, 2, 3])
    with pytest.raises(TypeError):
        write(shared)
    assert shared == [1, 2, 3]


def test_a_part_and_a_copy_of_a_list_keep_its_type():
    shared = torch.jit.script([1, 2, 3])
    for other in (shared[1:], shared.copy(), copy.deepcopy(shared), pickle.loads(pickle.dumps(shared))):
        with pytest.raises(TypeError):
            other.append("a")
        assert len(shared) == 3
    with pytest.raises(RuntimeError, match="different sizes"):
        shared[0:1] = [1, 2]


def test_keys_of_another_type_are_not_there():
    shared = torch.jit.script({1: 2})
    with pytest.raises(KeyError):
        shared["a"]
    with pytest.raises(KeyError):
        assert "a" not in shared
    for write in (
        lambda: shared.update({"a": 1}),
        lambda: shared.__setitem__(1, "a"),
        lambda: shared.__delitem__("a"),
        lambda: shared.setdefault(5, "a"),
    ):
        with pytest.raises((TypeError, KeyError)):
            write()
    assert shared == {1: 2}


def test_elements_of_several_types_have_none_in_common():
    with pytest.raises(RuntimeError, match="Unable to infer type of list"):
        torch.jit.script([1, "a"])
    assert torch.jit.script([1, None]) == [1, None]


def test_a_list_of_another_type_comes_in_as_a_copy():
    @torch.jit.script
    def add_float(numbers: list[float]):
        numbers.append(0.5)
        return numbers

    shared = torch.jit.script([1])
    assert add_float(shared) == [1.0, 0.5] and shared == [1]


class LeavesItems(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])

    def forward(self, x):
        for layer in self.layers:
            for i in range(3):
                if i == 1:
                    break
            if x.sum() > 0:
                continue
            x = layer(x)
        return x


def test_loops_over_modules_and_tuples_are_not_left():
    with pytest.raises(
        RuntimeError, match="we do not support break or continue inside the body of these loops"
    ):
        torch.jit.script(LeavesItems())
    with pytest.raises(RuntimeError, match="SyntaxError: 'break' outside loop"):
        torch.jit.CompilationUnit("def f(a):\n    break\n")
