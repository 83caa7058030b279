"""`Await` in scripts: its type, its nodes in graphs, and files that hold it."""

import io

import pytest

import rushlight
from rushlight import Tensor
from rushlight._awaits import _Await as Await


class Pair:
    def __init__(self, a: Tensor, b: Tensor):
        self.first = a
        self.other = b

    def second(self) -> Tensor:
        return self.other


def scaled(pair: Pair) -> Pair:
    return Pair(pair.first * 2, pair.other * 3)


def read_without_asking(x: Tensor):
    later: Await[Pair] = rushlight.jit._awaitable(scaled, Pair(x, x))
    return later.first + later.second() + x


def several(x: Tensor):
    return x * 100, [x * 1, x * 2, x * 3]


def third(x: Tensor) -> Tensor:
    later = rushlight.jit._awaitable(several, x)
    (_, found) = rushlight.jit._awaitable_wait(later)
    return found[2]


def tripled(later: Await[Tensor]) -> Tensor:
    return 3 * rushlight.jit._awaitable_wait(later)


def given_on(x: Tensor) -> Tensor:
    return tripled(rushlight.jit._awaitable_nowait(x)) + x


def test_attributes_of_an_await_are_those_of_its_result():
    script = rushlight.jit.script(read_without_asking)
    assert script(rushlight.ones(2)).tolist() == [6.0, 6.0]
    kinds = [node.kind() for node in script.graph.nodes()]
    assert kinds.count("prim::awaitable") == 1
    assert kinds.count("prim::awaitable_wait") == 2
    (made,) = script.graph.findAllNodes("prim::awaitable")
    assert str(made.output().type()).startswith("Await[")


@pytest.mark.parametrize(("function", "result"), [(third, 3.0), (given_on, 4.0)])
def test_files_may_hold_calls_that_are_made_later(function, result):
    file = io.BytesIO()
    rushlight.jit.save(rushlight.jit.script(function), file)
    file.seek(0)
    assert rushlight.jit.load(file)(rushlight.ones(2)).tolist() == [result, result]


def test_an_await_is_of_the_type_of_its_result():
    def wrong(x: Tensor) -> Await[int]:
        return rushlight.jit._awaitable_nowait(x)

    with pytest.raises(RuntimeError, match=r"Await\[int\] but is actually of type Await\[Tensor\]"):
        rushlight.jit.script(wrong)

    def not_asked(x: Tensor) -> Tensor:
        return scaled(rushlight.jit._awaitable(scaled, Pair(x, x))).first

    with pytest.raises(RuntimeError, match=r"instead found type 'Await\[.*Pair\]'"):
        rushlight.jit.script(not_asked)


def test_a_pending_call_is_of_the_core_s_class():
    assert isinstance(rushlight.jit._awaitable(scaled, None), rushlight._C._Await)
    with pytest.raises(RuntimeError, match="later"):
        rushlight.jit.script(tripled)(rushlight.ones(2))
