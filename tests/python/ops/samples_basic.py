"""Rows of the operators that everything else leans on."""

import numpy as np
from rows import FLOATS, INTS, Row, Sample, binary, reduction, unary

_POSITIVE = (0.2, 3.0)
_ALL = FLOATS + INTS


def _pointwise(name, reference=None, **options):
    return Row(name, unary(), reference=reference, inplace=True, out=True, **options)


def _arithmetic(name, reference=None, **options):
    return Row(name, binary(), reference=reference, inplace=True, out=True, **options)


ROWS = [
    _arithmetic("add", np.add, dtypes=_ALL),
    _arithmetic("sub", np.subtract, dtypes=_ALL),
    _arithmetic("mul", np.multiply, dtypes=_ALL),
    _arithmetic("div", np.divide, domain=_POSITIVE, dtypes=FLOATS),
    _arithmetic("pow", np.power, domain=_POSITIVE),
    Row(
        "atan2",
        lambda make: [Sample((make(3, 4), make(4)))],
        domain=_POSITIVE,
        reference=np.arctan2,
        inplace=True,
        out=True,
    ),
    Row("eq", binary(), dtypes=_ALL, grad=False),
    Row("lt", binary(), dtypes=_ALL, grad=False),
    _pointwise("exp", np.exp),
    _pointwise("log", np.log, domain=_POSITIVE),
    _pointwise("sqrt", np.sqrt, domain=_POSITIVE),
    _pointwise("sin", np.sin),
    _pointwise("cos", np.cos),
    _pointwise("tanh", np.tanh),
    _pointwise("sigmoid"),
    _pointwise("abs", np.abs, domain=_POSITIVE, dtypes=_ALL),
    _pointwise("neg", np.negative),
    _pointwise("reciprocal", np.reciprocal, domain=_POSITIVE),
    Row("sum", reduction()),
    Row("mean", reduction()),
    Row("softmax", lambda make: [Sample((make(3, 4), 1)), Sample((make(2, 3, 2), 0))]),
    Row("log_softmax", lambda make: [Sample((make(3, 4), 1))]),
    Row(
        "matmul",
        lambda make: [
            Sample((make(2, 3), make(3, 4))),
            Sample((make(3), make(3))),
            Sample((make(2, 2, 3), make(3, 2))),
        ],
        reference=np.matmul,
    ),
    Row(
        "cat",
        lambda make: [Sample(([make(2, 3), make(1, 3)],)), Sample(([make(2, 1), make(2, 2)], 1))],
        method=False,
    ),
    Row("stack", lambda make: [Sample(([make(2, 3), make(2, 3)], -1))], method=False),
    Row("where", lambda make: [Sample((np.array([True, False, True]), make(3), make(3)))], method=False),
    Row("gather", lambda make: [Sample((make(3, 4), 1, np.array([[0, 2], [1, 1], [3, 0]])))]),
    Row("index_select", lambda make: [Sample((make(3, 4), 0, np.array([2, 0])))]),
    Row("transpose", lambda make: [Sample((make(2, 3), 0, 1))], dtypes=_ALL),
    Row("permute", lambda make: [Sample((make(2, 3, 4), (2, 0, 1)))]),
    Row("flip", lambda make: [Sample((make(2, 3), (0,)))]),
    Row(
        "Tensor.view",
        lambda make: [Sample((make(2, 3), 6)), Sample((make(2, 3), (3, -1)))],
        refused={"layout": "needs a viewable layout"},
    ),
    Row("Tensor.expand", lambda make: [Sample((make(2, 1), 2, 3))]),
    Row("nn.functional.relu", unary((3, 4)), domain=(0.1, 3.0)),
    Row("nn.functional.linear", lambda make: [Sample((make(2, 3), make(4, 3), make(4)))]),
]
