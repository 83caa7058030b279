"""Rows: one operator, how to make inputs for it, and what it must agree with.

A family's file ``samples_<family>.py`` offers ``ROWS = [Row("atan2", binary()), ...]``; ``test_ops.py`` runs
every property over every row. Inputs are described as NumPy arrays: the operator and its
oracle see the same numbers.
"""

from dataclasses import dataclass, field

FLOATS = ("float32", "float64")
HALVES = ("float16", "bfloat16")
INTS = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")


@dataclass
class Sample:
    """One call. Arrays (and lists of arrays) in ``args`` become tensors; everything else is passed on."""

    args: tuple
    kwargs: dict = field(default_factory=dict)


@dataclass
class Row:
    name: str  # "atan2", "nn.functional.relu", "linalg.svd"; "Tensor.view" for what exists only as a method
    samples: object  # function (make) -> iterable of Sample, make(*shape, low=, high=) giving an array
    dtypes: tuple = FLOATS
    reference: object = None  # NumPy function of the same arguments; PyTorch's own otherwise
    domain: tuple = (-3.0, 3.0)
    grad: bool = True  # gradcheck and gradgradcheck
    gradgrad: bool = True
    inplace: bool = False  # has `name_`
    out: bool = False
    method: bool = True
    rtol: float | None = None
    atol: float | None = None
    refused: dict = field(default_factory=dict)  # property -> reason why it does not apply

    @property
    def id(self):
        return self.name


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
