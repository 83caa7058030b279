"""Numbers and text in scripts, where TorchScript's are not Python's: PyTorch gives the same."""

import math

import pytest

import rushlight as torch
from rushlight import Tensor
from rushlight._command.names import is_aliased

INF, NAN = math.inf, math.nan


def quotients(a: float, b: float, i: int, j: int):
    return a / b, a // b, a % b, a**b, i / j, i % b, i // b, b // j, i**j, b**i


def wrapping(i: int, j: int):
    k = i
    k += j
    k *= 3
    k -= i
    return i + j, i - j, i * j, i << 3, 1 << j, -i, abs(i), k, (i * i + j) % 1000


def assigned(a: float, i: int, j: int):
    a /= i
    b = 7.0
    b %= 0.3
    d = j**i
    d **= 2
    return a, i, b, d


def of_math(x: float, i: int):
    return (
        math.sqrt(x), math.log(x), math.log(x, 2.0), math.log10(x), math.log1p(x), math.exp(x),
        math.pow(x, i), math.acos(x), math.acosh(x), math.atanh(x), math.sin(x), math.gamma(x),
        math.lgamma(x),
        math.sinh(x),
        math.fmod(x, 0.0), math.ldexp(x, i), math.degrees(x), math.expm1(x), math.cosh(x),
    )  # fmt: skip


def roundings(x: float, i: int, b: bool):
    return round(x), round(i), int(x), max(i, x), min(x, i), max(i, 2), abs(i), pow(i, 2), b + b, -i, sum([i])


def texts(x: float, l: list[float], t: tuple[int, float], d: dict[str, float], s: list[str], c: complex):
    named = "%s|%d|%s" % (x, 3, l)  # noqa: UP031
    return [str(x), f"{x} {l} {t}", "{} {0}|{}".format(x, d), named, str(s), str(c), str((1,)), str(x > 0)]  # noqa: F525


def sizes(x: Tensor):
    shape, parts = x.shape, x.split(1)
    shape.append(7)
    parts.append(x)
    rows, found, wide = x.unbind(0), torch.where(x > 0), x.size() + [1]
    rows.reverse()
    both = (1,) + x.shape[1:] + shape  # noqa: RUF005
    return shape, len(parts), rows[0], found, wide, both, x.stride(), f"{x.shape}", [5, *wide[:1]]


CASES = [
    (quotients, (7.5, 0.1, 7, 2)),
    (quotients, (-1.0, 0.0, -7, 2)),
    (quotients, (0.0, 0.0, 1, -2)),
    (quotients, (-8.0, 1 / 3, 3, -2)),
    (quotients, (5.0, INF, 0, 3)),
    (quotients, (INF, -2.0, 10, 400)),
    (quotients, (NAN, -0.0, -3, 1)),
    *((wrapping, (i, j)) for i, j in ((2**63 - 1, 5), (-(2**63), 64), (-3, 2**62), (7, 2))),
    (assigned, (1.5, 7, 2)),
    (assigned, (1.5, 0, 3)),
    *(
        (of_math, (x, i))
        for x, i in ((0.5, 3), (0.0, -1), (-1.0, 2), (1.0, 0), (-2.5, 3), (800.0, 9), (INF, 1))
    ),
    *((roundings, (x, i, True)) for x, i in ((2.5, 3), (-2.5, -3), (INF, 0), (NAN, 1), (1e30, 2), (-0.3, 5))),
    *(
        (texts, (x, [x, 1.5], (2, x), {"a": x}, ["b", "c"], complex(x, -2)))
        for x in (2.0, 0.1, 1e20, -3.25, INF, 1e16, 1e-5)
    ),
]


def told(value):
    """A text in which equal values, NaN among them, are equal, and 1 is not 1.0."""
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(map(told, value))})"
    return f"float {value:.12g}" if isinstance(value, float) else repr(value)


@pytest.mark.skipif(is_aliased(), reason="compares with PyTorch, which the alias replaces")
@pytest.mark.parametrize(("function", "given"), CASES)
def test_results_are_those_of_pytorch(function, given):
    oracle = pytest.importorskip("torch")
    found, wanted = torch.jit.script(function), oracle.jit.script(function)
    try:
        results = wanted(*given)
    except RuntimeError as error:
        with pytest.raises(RuntimeError) as caught:
            found(*given)
        assert str(caught.value).splitlines()[-1] == str(error).splitlines()[-1]
    else:
        assert told(found(*given)) == told(results)


def test_what_an_archive_computes_is_the_same(tmp_path):
    for number, (function, given) in enumerate((CASES[0], CASES[7], CASES[8], CASES[16], CASES[-1])):
        scripted = torch.jit.script(function)
        scripted.save(tmp_path / f"{number}.pt")
        again = torch.jit.load(tmp_path / f"{number}.pt")
        assert told(again(*given)) == told(scripted(*given))


def test_sizes_and_parts_of_tensors_are_lists():
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    shape, parts, first, found, wide, both, stride, text, started = torch.jit.script(sizes)(x)
    assert (type(shape), shape) == (list, [2, 2, 7]) and parts == 3 and first.tolist() == [3.0, 4.0]
    assert type(found) is list and [f.tolist() for f in found] == [[0, 1, 1], [0, 0, 1]]
    assert (wide, both, stride, text, started) == ([2, 2, 1], [1, 2, 2, 2, 7], [2, 1], "[2, 2]", [5, 2])


def same_sizes(shape: list[int], wanted: tuple[int, int]):
    return shape == wanted, shape != wanted, shape + (1,)  # noqa: RUF005


def compared(x: Tensor):
    wanted = (2, 3)
    found = x.shape
    alike = x.shape == (2, 3), x.size() != (2, 4), found == wanted, wanted != found, (2, 3) == x.shape
    return alike, x.shape == [2, 3], x.shape[1:] == (3,), same_sizes(x.shape, wanted), x.shape + wanted


def test_sizes_are_compared_with_tuples():
    alike, listed, part, called, joined = torch.jit.script(compared)(torch.ones(2, 3))
    assert alike == (True, True, True, False, True) and listed and part
    assert called == (True, False, [2, 3, 1]) and joined == [2, 3, 2, 3]


class Shaped:
    def __init__(self, shape: tuple[int, int]):
        self.shape = shape

    def split(self) -> tuple[int, int]:
        return self.shape


def of_a_class(n: int):
    made = Shaped((n, 2))
    return made.shape, made.split(), made.shape == (n, 2)


def test_values_that_are_no_tensors_keep_their_tuples():
    assert torch.jit.script(of_a_class)(3) == ((3, 2), (3, 2), True)


def whole_quotient(i: int, j: int) -> int:
    return i // j


def wrong_power(i: int) -> int:
    return i**2


def wrong_round(x: float) -> int:
    return round(x)


def wrong_text(s: str) -> str:
    return s * 2


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def ping(n: int) -> int:
    return pong(n)


def pong(n: int) -> int:
    return ping(n)


def test_refusals():
    with pytest.raises(RuntimeError, match="RuntimeError: division by 0"):
        torch.jit.script(whole_quotient)(1, 0)
    for wrong, words in (
        (wrong_power, "type int but is actually of type float"),
        (wrong_round, "type int but is actually of type float"),
        (wrong_text, "Arguments for call are not valid"),
        (fibonacci, "function 'fibonacci' is called recursively. Recursive calls are not supported"),
        (ping, "function 'ping' is called recursively"),
    ):
        with pytest.raises(RuntimeError, match=words):
            torch.jit.script(wrong)
    with pytest.raises(RuntimeError, match="function 'f' is called recursively"):
        torch.jit.CompilationUnit("def f(x):\n    return g(x)\ndef g(x):\n    return f(x)\n")
    local = torch.jit.CompilationUnit("def f(x):\n    f = x + 1\n    return f\n")
    assert local.f(torch.ones(1)).item() == 2


def printed(x: float, l: list[float]):
    print(x, l, "a", True, None)


def test_print_writes_what_scripts_write(capsys):
    torch.jit.script(printed)(2.0, [1.0, 0.5])
    assert capsys.readouterr().out == "2. [1., 0.5] a True None\n"


def inplace(x: Tensor):
    y = x
    x /= 2
    y %= 3
    return x, y


def test_tensors_are_written_to_in_place():
    x = torch.tensor([8.0, 3.0])
    a, b = torch.jit.script(inplace)(x)
    assert a is x and b is x and x.tolist() == [1.0, 1.5]
