"""Paths without a return, and what is no value: refused when a script is made, with the line."""

from typing import Any

import pytest

import rushlight as torch
from rushlight import Tensor, nn


def nothing(x: Tensor) -> int:
    pass


def one_branch(x: Tensor) -> int:
    if bool(x.sum() > 0):
        return 1


def in_a_loop(x: int) -> int | None:
    for i in range(x):
        return i


def method(x: Tensor):
    return x.unsqueeze


def of_a_method(x: Tensor):
    return x.unsqueeze.count


def called(x: Tensor):
    return x(3)


def forked(x: Tensor):
    return torch.jit.fork(x)


def deleted(x: Tensor):
    y = x * 2
    del y
    return y  # noqa: F821


def deleted_in_a_branch(x: Tensor):
    y = x * 2
    if bool(x.sum() > 0):
        del y
    return y


def no_index():
    pair = (1, 2)
    return pair[0.5]


def pair_and_number(x: tuple[Tensor, Tensor]):
    return x + 1


def next_of(x: int) -> int:
    return x + 1


def future_of_another(x: int) -> torch.jit.Future[float]:
    return torch.jit.fork(next_of, x)


def fork_of_another(x: str) -> Any:
    return torch.jit.fork(next_of, x)


ALONG_ALL = "does not return along all paths"
REFUSED = [
    (nothing, ALONG_ALL),
    (one_branch, ALONG_ALL),
    (in_a_loop, ALONG_ALL),
    (method, "builtin cannot be used as a value"),
    (of_a_method, "attribute lookup is not defined on builtin"),
    (called, "cannot call a value"),
    (forked, "cannot call a value"),
    (deleted, "undefined value y"),
    (deleted_in_a_branch, "undefined value y"),
    (no_index, "tuple index must be an integer"),
    (pair_and_number, "Arguments for call are not valid"),
    (future_of_another, r"annotated as having type Future\[float\] but is actually of type Future\[int\]"),
    (fork_of_another, "Expected a value of type 'int' for argument 'x' but instead found type 'str'"),
]


@pytest.mark.parametrize(("program", "words"), REFUSED, ids=[p.__name__ for p, _ in REFUSED])
def test_no_value_is_refused(program, words):
    with pytest.raises(RuntimeError, match=words) as error:
        torch.jit.script(program)
    assert "test_jit_values.py" in str(error.value)


def raises_else(x: int) -> int:
    if x > 0:
        return 1
    else:
        raise ValueError("no")


def never(x: int) -> int:
    assert False, "not reached"  # noqa: B011


def within(x: Tensor) -> Tensor:
    with torch.no_grad():
        return x * 2


def any_future(x: int) -> torch.jit.Future[Any]:
    return torch.jit.fork(next_of, x)


def appends(x: list[int]) -> int:
    put = x.append
    put(3)
    return len(x)


def sizes(x: Tensor):
    return (x.shape[0],) + x.shape[1:]  # a tuple becomes a list where one is added  # noqa: RUF005


@pytest.mark.parametrize(
    ("program", "given", "wanted"),
    [
        (sizes, torch.ones(2, 3), [2, 3]),
        (raises_else, 2, 1),
        (within, torch.ones(1), 2),
        (appends, [1], 2),
        (next_of, 1, 2),
    ],
)
def test_what_returns_along_all_paths_is_taken(program, given, wanted):
    got = torch.jit.script(program)(given)
    assert (list(got) if isinstance(wanted, list) else got) == wanted


def test_what_never_returns_and_futures_of_any_are_taken():
    assert torch.jit.script(any_future)(1).wait() == 2
    with pytest.raises(torch.jit.Error, match="not reached"):
        torch.jit.script(never)(1)


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.items, self.named, self.pair = [1], {"k": [1]}, ([1], 2)
        self.same = self.items

    def forward(self, x: int):
        self.items.append(x)
        self.named["k"].append(x)
        self.pair[0].append(x)
        return self.items, self.named, self.pair, self.same


def test_a_script_writes_to_lists_of_its_own():
    holder = Holder()
    scripted = torch.jit.script(holder)
    assert scripted(5) == ([1, 5], {"k": [1, 5]}, ([1, 5], 2), [1])
    assert (holder.items, holder.named, holder.pair) == ([1], {"k": [1]}, ([1], 2))
