"""What scripts give to Python, and lists that are returned or assigned as lists of another type."""

import pytest

import rushlight as torch
from rushlight import Tensor, nn


def largest(x: Tensor):
    return x.topk(2)


def several(x: Tensor):
    found = x.max(1)
    return found, found.values, [1], (x.sort(1), 2)


class Inner(nn.Module):
    def forward(self, x: Tensor):
        return x.max(1)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x: Tensor):
        found = self.inner(x)
        return found.values + found.indices, found


def test_named_results_leave_scripts_as_tuples():
    x = torch.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    values, places = found = torch.jit.script(largest)(x)
    assert (
        type(found) is tuple and values.tolist() == [[3, 2], [6, 5]] and places.tolist() == [[0, 2], [1, 2]]
    )
    first, _, listed, (inner, number) = torch.jit.script(several)(x)
    assert type(first) is tuple and type(inner) is tuple and listed == [1] and number == 2
    assert type(largest(x)) is not tuple  # of Python's function


def test_scripts_among_each_other_keep_names():
    total, found = torch.jit.script(Outer())(torch.tensor([[3.0, 1.0], [4.0, 6.0]]))
    assert total.tolist() == [3.0, 7.0] and type(found) is tuple


def of_tensors(x: Tensor) -> list[int]:
    return [x.sum(), x.max()]


def of_both(x: Tensor) -> list[float] | None:
    return [x.sum(), 1.0]


def assigned(x: Tensor):
    found: list[float] = [x.sum()]
    return found


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (of_tensors, r"`List\[int\]` did not match .* were unified to Tensor"),
        (of_both, r"`List\[float\]` did not match .* were unified to Union\[Tensor, float\]"),
        (assigned, r"`List\[float\]` did not match .* were unified to Tensor"),
    ],
)
def test_lists_of_tensors_are_no_lists_of_numbers(function, words):
    with pytest.raises(RuntimeError, match=words):
        torch.jit.script(function)


def one_number(x: Tensor) -> int:
    return x.sum()


def test_one_tensor_may_be_a_number():
    assert torch.jit.script(one_number)(torch.tensor([1, 2])) == 3
