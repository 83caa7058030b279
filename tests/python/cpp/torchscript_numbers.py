"""Programs of PyTorch whose archives C++ runs: numbers as TorchScript computes and writes them, hooks."""

# ruff: noqa: UP030, UP031, UP032

import math

import torch
from torch import nn


class Numbers(nn.Module):
    """Divisions by nothing, floats beyond whole numbers, roundings, functions of `math`."""

    def __init__(self):
        super().__init__()
        self.turn, self.turns = 1.5 + 2j, [1j, 2j]

    def forward(self, x: float, i: int):
        by_zero = [x / 0.0, -x / 0.0, x // 0.0, i / 0.0]
        remainders = [x % 0.3, x % -0.7, -x % 0.7, x // 0.1, x // -0.7]
        wholes = [int(x * 1e30), int(-x), i // 3, i % 3, -i // 3, -i % 3, 9223372036854775807 + i]
        rounded = [round(x), round(2.5), float(i**2), 2**-1, float(max(i, x)), float(min(i, x))]
        pairs = divmod(x, 0.7), divmod(i, 3), divmod(-i, 3), math.frexp(x), math.modf(x)
        return by_zero, remainders, wholes, rounded, pairs, math.ldexp(x, 3), self.turn * x, self.turns


class Words(nn.Module):
    """Numbers in texts, and tests of texts."""

    def forward(self, x: float, i: int, words: str):
        percent = "%s %d %i %e %E %f|%c%c|%d%%" % (x, x, i, x, x, x / 3, "a", 66, x * 1e20)
        written = (
            f"{x} {i} {[x]} {(x, i)} {x / 0.0} {x / 3}",
            str({"k": x}),
            str(complex(x, -1.0)),
            "{}".format(x),
        )
        tests = words.istitle(), words.title().istitle(), words.isidentifier(), "a1_".isidentifier()
        return percent, written, tests, words.expandtabs(4), "\ta\tbc".expandtabs(), hex(i), oct(i), bin(i)


class Listed(nn.Module):
    def forward(self, x: torch.Tensor):
        rows: list[list[float]] = x.tolist()
        places: list[int] = x.argmax(1).tolist()
        above: list[bool] = (x[0] > 0).tolist()
        total: float = x.double().sum().tolist()
        return rows, places, above, total, torch.max(x, 0), torch.min(x, 1)


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Identity()
        self.inner.register_forward_hook(after)
        self.register_forward_pre_hook(before)
        self.register_forward_hook(paired)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + 1


def before(self, given: tuple[torch.Tensor]) -> torch.Tensor:
    return given[0] * 10


def after(self, given: tuple[torch.Tensor], result: torch.Tensor) -> torch.Tensor:
    return result * 2 + given[0]


def paired(self, given: tuple[torch.Tensor], result: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return result, given[0]


def programs():
    s = ("script",)
    return {
        "numbers": (Numbers(), (2.5, 7), s),
        "numbers_below": (Numbers(), (-1.75, 4), s),
        "words": (Words(), (2.5, 66, "One two\tthree"), s),
        "words_whole": (Words(), (-2.0, 5, "x"), s),
        "listed": (Listed(), (torch.tensor([[0.0, 5.0, 2.0], [3.0, 1.0, -4.0]]),), s),
        "hooked": (Hooked(), (torch.tensor([1.0, 2.0]),), s),
    }
