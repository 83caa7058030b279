"""What PyTorch's archives compute with numbers, text, lists and hooks, and overloads that a number picks."""

import math
import zipfile

import pytest

import rushlight
from rushlight._command.names import is_aliased

oracle = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(is_aliased(), reason="the alias replaces PyTorch, whose archives these are")


def of_numbers(x: float, i: int, j: int):
    known = [
        math.asin(x / 4),
        math.fabs(x),
        math.gamma(x),
        math.erf(x),
        math.log(x),
        math.sqrt(x),
        math.acosh(x),
    ]
    return known, math.factorial(abs(i)), x // 0.1, x % 0.3, i**j, x / 0.0, round(x), max(i, x), int(x * 1e30)


def of_text(x: float, words: str):
    parts = words.rsplit(" ", 1)
    made = "%s and %d" % (x, 3)  # noqa: UP031
    return (
        parts,
        made,
        f"{x} {[x]} {words.swapcase()}",
        str(x),
        "{}|{}".format(x, "a"),
        words.partition(" ")[0],
    )


def of_lists(values: list[int], pairs: list[tuple[float, int]]):
    values.sort(reverse=True)
    return sorted(values), values, sorted(pairs)


def of_digits(x: float, i: int):
    return hex(i), oct(i), bin(i), "%f|%d|%E|%c" % (x / 3, x, x, "a"), str(complex(x, -2.0))  # noqa: UP031


class Turned(oracle.nn.Module):
    def __init__(self):
        super().__init__()
        self.turn, self.turns = 1.5 + 2j, [1j, 2j]

    def forward(self, x: oracle.Tensor):
        return x * self.turn, self.turns


class OfTensors(oracle.nn.Module):
    def forward(self, x: oracle.Tensor):
        best, where = oracle.max(x, 1)
        least, place = oracle.min(x, 0)
        values: list[float] = x.flatten().tolist()
        a, b = oracle.meshgrid([x[0], x[1]])
        return best, where, least, place, oracle.max(x, x * 2), oracle.max(x), values, a, b


class Hooked(oracle.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = oracle.nn.Identity()
        self.inner.register_forward_hook(after)
        self.register_forward_pre_hook(before)

    def forward(self, x: oracle.Tensor) -> oracle.Tensor:
        return self.inner(x) + 1


def before(self, given: tuple[oracle.Tensor]) -> oracle.Tensor:
    return given[0] * 10


def after(self, given: tuple[oracle.Tensor], result: oracle.Tensor) -> oracle.Tensor:
    return result * 2 + given[0]


def told(value):
    if isinstance(value, (tuple, list)):
        return [told(part) for part in value]
    if isinstance(value, float):
        return f"{value:.10g}"
    return (str(value.dtype), value.tolist()) if hasattr(value, "dtype") else value


@pytest.mark.parametrize(
    ("program", "given"),
    [
        (of_numbers, (2.5, 3, -2)),
        (of_numbers, (-0.5, -4, 3)),
        (of_numbers, (0.0, 0, 0)),
        (of_text, (2.0, "one Two three")),
        (of_text, (0.1, "")),
        (of_digits, (2.5, 66)),
        (of_digits, (-1e20, 3)),
        (Turned(), ([1.0, 2.0],)),
        (of_lists, ([2, 3, 1], [(2.0, 1), (1.0, 5)])),
        (OfTensors(), ([[0.0, 5.0, 2.0], [3.0, 1.0, -4.0]],)),
        (Hooked(), ([1.0, 2.0],)),
    ],
)
def test_results_are_pytorchs(program, given, tmp_path):
    scripted = oracle.jit.script(program)
    scripted.save(str(tmp_path / "program.pt"))
    found = rushlight.jit.load(tmp_path / "program.pt")
    if isinstance(program, oracle.nn.Module):
        wanted = scripted(oracle.tensor(*given))
        given = (rushlight.tensor(*given),)
    else:
        wanted = scripted(*given)
    assert told(found(*given)) == told(wanted)


def test_a_number_picks_the_overload_of_a_dimension():
    for module in (oracle, rushlight):
        x = module.tensor([[0.0, 5.0], [3.0, 1.0]])
        values, places = module.ops.aten.max(x, 0)
        assert values.tolist() == [3.0, 5.0] and places.tolist() == [1, 0]
        assert module.ops.aten.min(x, module.tensor(1)).tolist() == [[0.0, 1.0], [1.0, 1.0]]
        assert module.ops.aten.max(x).item() == 5.0


class Old(oracle.nn.Module):
    """Operators that once did something else."""

    def forward(self, a: oracle.Tensor, b: oracle.Tensor):
        quotients = (
            oracle.div(a, b),
            a.div(2),
            a.clone().div_(b),
            oracle.div(a, b, out=oracle.empty(1)),
            7 / 2,
        )
        return (
            quotients,
            oracle.full([2], 3),
            oracle.full([2], 3, dtype=oracle.long),
            oracle.linspace(0, 1, 100).size(0),
        )


def rewritten(path, version):
    """The archive as a version of PyTorch wrote it."""
    made = path.with_name(f"version_{version}.pt")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("/version"):
                content = f"{version}\n".encode()
            if name.endswith(".py") and version < 8:
                content = content.replace(b"linspace(0, 1, 100)", b"linspace(0, 1)")
            new.writestr(name, content)
    return made


@pytest.mark.parametrize("version", [2, 3, 4, 5, 10])
def test_operators_are_those_of_an_archives_version(version, tmp_path):
    oracle.jit.script(Old()).save(str(tmp_path / "new.pt"))
    path = rewritten(tmp_path / "new.pt", version)
    wanted, found = oracle.jit.load(str(path)), rushlight.jit.load(path)
    for values in ([5.0], [5], [-5])[: 3 if version < 4 else 1]:  # in place, whole numbers do not stay so
        given = values, [2]
        assert told(found(*map(rushlight.tensor, given))) == told(wanted(*map(oracle.tensor, given)))
