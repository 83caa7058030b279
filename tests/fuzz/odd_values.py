"""Values that are nearly numbers, lists or tensors: NumPy's scalars, enumerations, and objects that change
or fail while they are read."""

import collections
import enum
import fractions
import itertools
from decimal import Decimal

import numpy as np


class Choice(enum.IntEnum):
    ONE = 1
    HUGE = 2**62


class Option(enum.IntFlag):
    A = 1
    B = 2


class Word(str, enum.Enum):
    MEAN = "mean"
    SUM = "sum"


class Whole(int):
    """An integer that says another one."""

    def __index__(self):
        return 2**63

    def __bool__(self):
        raise ValueError("no truth")


class Real(float):
    def __float__(self):
        raise OverflowError("no float")


class Text(str):
    def __eq__(self, other):
        raise ValueError("not comparable")

    __hash__ = str.__hash__


class Index:
    """Stands for an integer, by a function of the test's."""

    def __init__(self, read):
        self.read = read

    def __index__(self):
        return self.read()

    __int__ = __index__

    def __float__(self):
        return float(self.read())


class LongList(list):
    def __len__(self):
        return 10


class ShortTuple(tuple):
    __slots__ = ()

    def __len__(self):
        return 0


class Endless:
    """A sequence by its methods alone, which does not end."""

    def __len__(self):
        return 3

    def __getitem__(self, at):
        return 1


class Failing:
    """Fails wherever it is read."""

    def __getattr__(self, name):
        raise AttributeError(name)

    def __len__(self):
        raise RuntimeError("no length")

    def __iter__(self):
        raise RuntimeError("no items")

    def __array__(self, *_, **__):
        raise RuntimeError("no array")

    def __repr__(self):
        return "Failing()"


class Refusing:
    """A tensor's stand-in that takes no call."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return NotImplemented


def _failed():
    raise ValueError("no index")


_alive: collections.deque = collections.deque(maxlen=8)


def _kept(value):
    """Kept alive for a while, so that a list's own count stays when it loses the value."""
    _alive.append(value)
    return value


def emptied_while_read():
    """A list whose first item empties it."""
    held = []

    def read():
        held.clear()
        return 1

    held += [_kept(Index(read)), 2, 3]
    return held


def grown_while_read():
    held = []

    def read():
        held.extend([1] * 10)
        return 1

    held += [_kept(Index(read)), 2]
    return held


def finished():
    generator = (i for i in (1, 2))
    generator.close()
    return generator


def stopped_in_between():
    yield 1
    raise ValueError("no more")


def numpy_scalars():
    return (
        np.int64(3), np.int8(-1), np.uint64(2**64 - 1), np.float16(1.5), np.float64("nan"), np.bool_(True),
        np.complex64(1j), np.str_("mean"), np.datetime64("2020-01-01"), np.array(2), np.array([1, None]),
        np.array("x"), np.zeros((2, 0)), np.ma.masked, np.float32, np.dtype("int64"), np.void(b"12"),
    )  # fmt: skip


MAKERS = (
    numpy_scalars,
    lambda: (
        Choice.ONE,
        Choice.HUGE,
        Option.A | Option.B,
        Word.MEAN,
        Whole(1),
        Real(1.0),
        Text("mean"),
        True,
    ),
    lambda: (Index(lambda: 2), Index(_failed), Index(lambda: 2**64), [Index(lambda: 1)] * 2),
    lambda: (emptied_while_read(), grown_while_read(), LongList([1, 2]), ShortTuple((1, 2)), Endless()),
    lambda: (
        finished(),
        stopped_in_between(),
        itertools.count(),
        zip([1], [2]),
        map(_failed, [1]),
        {1: 1}.keys(),
    ),
    lambda: (Failing(), Refusing(), [Failing()], [Refusing()], Decimal("1.5"), fractions.Fraction(1, 2)),
    lambda: (int, float, bool, complex, memoryview(b"1234"), bytearray(3), range(2**62), range(2**70)),
)


def odd_value(rng):
    """One of them, made anew."""
    return rng.choice(rng.choice(MAKERS)())


def odd_tensors(rl):
    """Functions that make tensors whose geometry or place is unusual."""
    return (
        lambda: rl.empty(0, 2**40),
        lambda: rl.empty(2**31, 0, 2),
        lambda: rl.empty(1, 0, 2**62),
        lambda: rl.ones(1).as_strided((1, 1), (2**62, 2**62)),
        lambda: rl.ones(1).as_strided((0, 3), (2**62, 2**62)),
        lambda: rl.ones(6).as_strided((2, 3), (1, 1)),
        lambda: rl.ones(6).as_strided((3, 2), (0, 0), 5),
        lambda: rl.ones(4)[2:].as_strided((2,), (1,), 0),
        lambda: rl.ones(3, dtype=rl.complex64).conj().imag,
        lambda: rl.ones(2, 3).to_sparse_csr(),
        lambda: rl.ones(2, 3, device="meta"),
        lambda: rl.empty(2**40, 2**20, device="meta"),
        lambda: [rl.ones(2), rl.ones(2, device="meta")],
        lambda: [rl.ones(2), rl.ones(2).to_sparse()],
        lambda: (rl.ones(2), None),
    )
