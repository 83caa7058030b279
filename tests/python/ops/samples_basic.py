"""Rows with a reference in NumPy, which says what is right where PyTorch is not installed."""

import numpy as np
from rows import FLOATS, INTS, Row, Sample, binary, reduction, unary

_POSITIVE = (0.2, 3.0)
_ALL = FLOATS + INTS


def _softmax(x, dim):
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)


def _over(function):
    return lambda x, dim=None, keepdim=False: function(x, axis=dim, keepdims=keepdim)


ROWS = [
    Row("add", binary(), _ALL, np.add),
    Row("sub", binary(), _ALL, np.subtract),
    Row("mul", binary(), _ALL, np.multiply),
    Row("div", binary(), FLOATS, np.divide, _POSITIVE),
    Row("pow", binary(), FLOATS, np.power, _POSITIVE),
    Row("atan2", lambda make: [Sample((make(3, 4), make(4)))], FLOATS, np.arctan2, _POSITIVE),
    Row("eq", binary(), _ALL, np.equal),
    Row("lt", binary(), _ALL, np.less),
    Row("exp", unary(), reference=np.exp),
    Row("log", unary(), reference=np.log, domain=_POSITIVE),
    Row("sqrt", unary(), reference=np.sqrt, domain=_POSITIVE),
    Row("sin", unary(), reference=np.sin),
    Row("cos", unary(), reference=np.cos),
    Row("tanh", unary(), reference=np.tanh),
    Row("sigmoid", unary(), reference=lambda x: 1 / (1 + np.exp(-x))),
    Row("abs", unary(), _ALL, np.abs, _POSITIVE),
    Row("neg", unary(), reference=np.negative),
    Row("reciprocal", unary(), reference=np.reciprocal, domain=_POSITIVE),
    Row("sum", reduction(), reference=_over(np.sum)),
    Row("mean", reduction(), reference=_over(np.mean)),
    Row(
        "softmax",
        lambda make: [Sample((make(3, 4), 1)), Sample((make(2, 3, 2), 0))],
        reference=_softmax,
    ),
    Row(
        "log_softmax",
        lambda make: [Sample((make(3, 4), 1))],
        reference=lambda x, dim: np.log(_softmax(x, dim)),
    ),
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
        reference=lambda parts, dim=0: np.concatenate(parts, dim),
    ),
    Row(
        "stack",
        lambda make: [Sample(([make(2, 3), make(2, 3)], -1))],
        reference=lambda parts, dim: np.stack(parts, dim),
    ),
    Row(
        "where",
        lambda make: [Sample((np.array([True, False, True]), make(3), make(3)))],
        reference=np.where,
    ),
    Row(
        "gather",
        lambda make: [Sample((make(3, 4), 1, np.array([[0, 2], [1, 1], [3, 0]])))],
        reference=lambda x, dim, index: np.take_along_axis(x, index, dim),
    ),
    Row(
        "index_select",
        lambda make: [Sample((make(3, 4), 0, np.array([2, 0])))],
        reference=lambda x, dim, index: np.take(x, index, dim),
    ),
    Row("transpose", lambda make: [Sample((make(2, 3), 0, 1))], _ALL, np.swapaxes),
    Row("permute", lambda make: [Sample((make(2, 3, 4), (2, 0, 1)))], reference=np.transpose),
    Row("flip", lambda make: [Sample((make(2, 3), (0,)))], reference=np.flip),
    Row(
        "Tensor.view",
        lambda make: [Sample((make(2, 3), 6)), Sample((make(2, 3), (3, -1)))],
        reference=lambda x, shape: x.reshape(shape),
        refused={"layout": "needs a viewable layout"},
    ),
    Row(
        "Tensor.expand",
        lambda make: [Sample((make(2, 1), 2, 3))],
        reference=lambda x, *shape: np.broadcast_to(x, shape),
    ),
    Row("nn.functional.relu", unary((3, 4)), reference=lambda x: np.maximum(x, 0), domain=(0.1, 3.0)),
    Row(
        "nn.functional.linear",
        lambda make: [Sample((make(2, 3), make(4, 3), make(4)))],
        reference=lambda x, w, b: x @ w.T + b,
    ),
]
