"""The rows of samples_pointwise and samples_activation in the form that test_ops runs, one for each name."""

from rows import FLOATS, INTS, Row, Sample
from samples_activation import ACTIVATION
from samples_pointwise import BINARY, INTEGER, TERNARY, TESTS, UNARY

_SHAPES = {
    1: [[(3, 4)], [()], [(2, 0, 3)]],
    2: [[(3, 4), (3, 4)], [(3, 1), (4,)], [(), (2, 3)], [(0, 3), (1, 3)]],
    3: [[(3, 4), (3, 4), (3, 4)], [(3, 1), (4,), ()], [(0, 3), (1, 3), (3,)]],
}


def _calls(row, inputs, make):
    for shapes in _SHAPES[inputs]:
        if row.name.endswith("glu"):
            shapes = [(*s[:-1], 4) if s else (4,) for s in shapes]
        tensors = [make(*shape, low=row.low, high=row.high) for shape in shapes]
        yield Sample((*row.first, *tensors, *row.extra), row.kwargs)


def _merged(name, group, inputs, dtypes):
    return Row(
        name,
        lambda make: [sample for row in group for sample in _calls(row, inputs, make)],
        dtypes=dtypes,
        grad=all(row.grad for row in group),
        inplace=all(row.inplace for row in group) and not any(row.first for row in group),
        method=not any(row.first for row in group),
    )


def _converted(rows, inputs, integers=None):
    groups = {}
    for row in rows:
        groups.setdefault(row.name, []).append(row)
    for name, group in groups.items():
        whole = ("int64",) if all(row.integers for row in group) else ()
        yield _merged(name, group, inputs, integers or FLOATS + whole)


ROWS = [
    *_converted(UNARY + TESTS + ACTIVATION, 1),
    *_converted(BINARY, 2),
    *_converted([row for row in INTEGER if row.inputs == 2], 2, INTS),
    *_converted([row for row in INTEGER if row.inputs == 1], 1, INTS),
    *_converted(TERNARY, 3),
]
