"""Rows: one operator, how to make inputs for it, and what it must agree with.

A family's file ``samples_<family>.py`` offers ``ROWS``, a list of `Row`; ``loader.py`` collects them, and
every property runs over every row to which it applies. Inputs are described as NumPy arrays: the operator and
its oracle see the same numbers. Which forms an operator has is told by its record; what does not apply for
another cause is refused on the row, with the reason.
"""

from dataclasses import dataclass, field

import numpy as np

FLOATS = ("float32", "float64")
HALVES = ("float16", "bfloat16")
INTS = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")

# What a row may refuse. Each is a property that some test file runs over all rows; `device` stands for all of
# them where operands lie on a device, `device_values` for the values there.
PROPERTIES = frozenset(
    """
    values layout method inplace out gradcheck gradgradcheck gradients forward vmap meta trace unsigned fuzz
    device device_values
    """.split()
)


@dataclass
class Sample:
    """One call. Arrays (and lists of arrays) in ``args`` become tensors; everything else is passed on."""

    args: tuple
    kwargs: dict = field(default_factory=dict)


class Given(np.ndarray):
    """An operand that is no variable: there is no derivative by class weights, say, in PyTorch either."""


def given(values):
    return np.asarray(values).view(Given)


@dataclass
class Sparse:
    """A tensor with sparse parts."""

    values: np.ndarray
    layout: str = "coo"  # csr, csc, bsr, bsc
    args: tuple = ()


@dataclass
class Quantized:
    """Numbers as integers with one scale, or one for each index of `axis`."""

    values: np.ndarray
    scale: object = 0.5
    zero_point: object = 3
    axis: int | None = None
    dtype: str = "quint8"


@dataclass
class Row:
    name: str  # "atan2", "nn.functional.relu", "linalg.svd"; "Tensor.view" for what exists only as a method
    samples: object  # function (make) -> iterable of Sample, make(*shape, low=, high=) giving an array
    dtypes: tuple = FLOATS
    reference: object = None  # NumPy function of the same arguments; PyTorch's own otherwise
    domain: tuple = (-3.0, 3.0)
    rtol: float | None = None
    atol: float | None = None
    refused: dict = field(default_factory=dict)  # property -> reason why it does not apply
    family: str = ""  # of the file that it stands in
    id: str = ""  # given by the loader: the name, numbered where an operator has several rows

    def __post_init__(self):
        assert self.refused.keys() <= PROPERTIES, f"{self.name} refuses {self.refused.keys() - PROPERTIES}"


def unary(*shapes):
    """One tensor of each shape."""
    shapes = shapes or ((3, 4), (), (2, 0, 3))
    return lambda make: [Sample((make(*shape),)) for shape in shapes]


def binary():
    """Two tensors: equal shapes, broadcast both ways, a Python number."""
    pairs = [((3, 4), (3, 4)), ((3, 1), (4,)), ((), (2, 3)), ((0, 3), (1, 3))]
    return lambda make: [Sample((make(*a), make(*b))) for a, b in pairs] + [Sample((make(3), 2.0))]


def reduction(**kwargs):
    """All elements, one dimension, several, with and without keeping them."""
    calls = [{}, {"dim": 0}, {"dim": -1, "keepdim": True}]
    return lambda make: [Sample((make(3, 4, 2),), {**c, **kwargs}) for c in calls]


# Equal shapes, broadcast both ways, without dimensions, without elements.
_OPERANDS = {
    1: [[(3, 4)], [()], [(2, 0, 3)]],
    2: [[(3, 4), (3, 4)], [(3, 1), (4,)], [(), (2, 3)], [(0, 3), (1, 3)]],
    3: [[(3, 4), (3, 4), (3, 4)], [(3, 1), (4,), ()], [(0, 3), (1, 3), (3,)]],
}


def pointwise(
    name, operands=1, *, low=-3.0, high=3.0, first=(), extra=(), kwargs=None, dtypes=None, shapes=None,
    constant=(), **options
):  # fmt: skip
    """A row of tensors of all shapes that broadcast, with other arguments before and after them."""

    def samples(make):
        for sizes in shapes or _OPERANDS[operands]:
            tensors = [make(*shape, low=low, high=high) for shape in sizes]
            tensors = [given(t) if i in constant else t for i, t in enumerate(tensors)]
            yield Sample((*first, *tensors, *extra), dict(kwargs or {}))

    return Row(name, samples, dtypes or FLOATS + HALVES + INTS + ("bool",), domain=(low, high), **options)


def fixed(calls):
    """Calls of given values, ``(args, kwargs)`` each."""
    return lambda make: [Sample(*call) for call in calls]


def fixed_rows(table, **options):
    """A row of values for each operator of ``{name: [(args, kwargs), ...]}``."""
    return [Row(name, fixed(calls), **{"dtypes": ("float64",), **options}) for name, calls in table.items()]
