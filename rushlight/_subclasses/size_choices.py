"""Sizes and comparisons of them that `cond` can tell from plain numbers and truths.

A trace has plain sizes, and what a program compares them with is lost in a bool. Where a `cond` is given one,
the program is traced again with sizes that keep this. If the compared numbers change with the sizes of the
inputs, the comparison becomes a part of the graph (`rushlight.export._dynamics`).
"""

import operator
from typing import Any

import rushlight as torch

__capture__ = "skip"  # Note [Capture marks]


class SizeChoices:
    """What the traces of one program have in common."""

    def __init__(self):
        self.asked = False  # whether a `cond` was given a bool
        self.tracking = False  # whether sizes keep what is compared
        self.kept: set = set()  # numbers of the `cond`s that are nodes, in the order of the program


class ComparableSize(int):
    """A size, or an integer computed of sizes."""

    numbers: Any

    def __new__(cls, value, numbers):
        made = int.__new__(cls, value)
        made.numbers = numbers
        return made

    def __reduce__(self):
        return int, (int(self),)

    def __neg__(self):
        return 0 - self

    def __hash__(self):
        return int.__hash__(self)

    __repr__ = __str__ = int.__repr__


def _arithmetic(name):
    plain, reflected = getattr(int, f"__{name}__"), getattr(int, f"__r{name}__")

    def run_as(compute):
        def run(self, other):
            if type(other) not in (int, ComparableSize):
                return NotImplemented if isinstance(other, torch.SymInt) else compute(self, other)
            return ComparableSize(compute(self, other), self.numbers)

        return run

    setattr(ComparableSize, f"__{name}__", run_as(plain))
    setattr(ComparableSize, f"__r{name}__", run_as(reflected))


def _comparison(relation):
    name = f"__{relation.__name__}__"
    plain = getattr(int, name)

    def compare(self, other):
        if type(other) not in (int, ComparableSize):
            return NotImplemented if isinstance(other, torch.SymInt) else plain(self, other)
        return SizeTruth(relation, int(self), int(other), self.numbers)

    setattr(ComparableSize, name, compare)


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    _arithmetic(_name)
for _relation in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge):
    _comparison(_relation)


class SizeTruth:
    """A comparison of sizes, or two of them joined; everywhere but in `cond` a bool."""

    def __init__(self, relation, first, second, numbers):
        self.relation, self.first, self.second, self.numbers = relation, first, second, numbers

    def __bool__(self):
        return bool(self.relation(self._plain(self.first), self._plain(self.second)))

    @staticmethod
    def _plain(operand):
        return bool(operand) if isinstance(operand, SizeTruth) else operand

    def compared(self):
        """The numbers that are compared."""
        operands = self.first, self.second
        return tuple(o.compared() if isinstance(o, SizeTruth) else o for o in operands)

    def for_cond(self):
        """The condition of the next `cond`: a tensor that the graph computes, or a bool."""
        return self.as_tensor() if _note(self.numbers, self.compared()) else bool(self)

    def as_tensor(self):
        operands = self.first, self.second
        return self.relation(*(o.as_tensor() if isinstance(o, SizeTruth) else _tensor(o) for o in operands))

    def __and__(self, other):
        return self._joined(operator.and_, other)

    def __or__(self, other):
        return self._joined(operator.or_, other)

    __rand__, __ror__ = __and__, __or__

    def _joined(self, relation, other):
        if isinstance(other, SizeTruth):
            return SizeTruth(relation, self, other, self.numbers)
        return relation(bool(self), other)

    def __eq__(self, other):
        return bool(self) == (bool(other) if isinstance(other, SizeTruth) else other)

    def __hash__(self):
        return hash(bool(self))

    def __repr__(self):
        return repr(bool(self))


def _tensor(number):
    return torch.full((), number, dtype=torch.int64)


def _note(numbers, compared):
    """Note what a `cond` depends on; whether it is a node."""
    numbers.compared.append(compared)
    return len(numbers.compared) - 1 in numbers.choices.kept


def note_bool(numbers):
    """A `cond` was given a bool."""
    if numbers is not None and numbers.choices is not None:
        numbers.choices.asked = True
        _note(numbers, None)


def is_tracking(numbers):
    """Whether sizes keep what is compared with them."""
    return numbers is not None and numbers.choices is not None and numbers.choices.tracking


def comparable(numbers, sizes):
    """The sizes of a tensor, which keep what is compared with them where they shall."""
    if not is_tracking(numbers):
        return sizes
    return torch.Size([ComparableSize(s, numbers) if type(s) is int else s for s in sizes])
