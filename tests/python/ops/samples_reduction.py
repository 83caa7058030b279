"""Rows of the reduction, scan and softmax operators: name -> list of (args, kwargs).

Arrays stand for tensors; float64 arrays take part in gradient checks. `None` as name prefix never occurs.
"""

import sys

import numpy as np
from rows import fixed_rows, given

_STREAMS = {}


def _stream():
    """One stream of numbers for each file of samples, so that a new file leaves the others' as they are."""
    name = sys._getframe(2).f_globals["__name__"]
    return _STREAMS.setdefault(name, np.random.default_rng(0))


def real(*shape):
    """Distinct values of both signs, away from ties and from zero."""
    n = int(np.prod(shape))
    values = (np.arange(n) - n / 2 + 0.3) * 0.7
    return _stream().permutation(values).reshape(shape)


def whole(*shape, low=-9, high=10):
    return _stream().integers(low, high, size=shape)


NAN = np.array([[1.0, np.nan, 3.0], [np.nan, -2.0, 0.5]])
ZEROS = np.array([[1.5, 0.0, 3.0, -2.0], [0.0, 0.0, 2.0, 1.0]])
X, V, S = real(3, 4, 5), real(7), np.array(1.7)
EMPTY = np.zeros((0, 3))

DIMS = [{}, {"dim": 0}, {"dim": -1, "keepdim": True}, {"dim": (0, 2)}, {"dim": (0, 1, 2), "keepdim": True}]
ONE_DIM = [{}, {"dim": 0}, {"dim": -1, "keepdim": True}]


def over(arrays, kwargs):
    return [((a,), k) for a in arrays for k in kwargs if a.ndim == 3 or not isinstance(k.get("dim"), tuple)]


ROWS = fixed_rows(
    {
        "sum": over([X, V, whole(3, 4, 5), NAN, S], DIMS) + [((EMPTY,), {"dim": 0}), ((EMPTY,), {})],
        "mean": over([X, V, NAN, S], DIMS) + [((EMPTY,), {"dim": 0})],
        "nansum": over([X, NAN], DIMS),
        "nanmean": over([X, NAN], DIMS),
        "prod": over([V, ZEROS, whole(3, 4, 5, low=1, high=3), S], ONE_DIM),
        "amax": over([X, whole(3, 4, 5), NAN, S], DIMS),
        "amin": over([X, whole(3, 4, 5), NAN, S], DIMS),
        "aminmax": over([X, NAN, S], ONE_DIM),
        "max": over([X, whole(3, 4, 5), NAN, S], ONE_DIM) + [((X, real(3, 4, 5)), {})],
        "min": over([X, whole(3, 4, 5), NAN, S], ONE_DIM) + [((X, real(3, 4, 5)), {})],
        "argmax": over([X, NAN, S], ONE_DIM)
        + [((real(200, 3).T,), {"dim": 0}), ((real(3, 200),), {"dim": 1})],
        "argmin": over([X, NAN, S], ONE_DIM),
        "all": over([X > 0, whole(3, 4, 5), NAN], DIMS),
        "any": over([X > 9, whole(3, 4, 5), NAN], DIMS),
        "count_nonzero": over([ZEROS, whole(3, 4, 5, low=-1, high=2)], [{}, {"dim": 0}, {"dim": (0, 1)}]),
        "var": over([X, V], DIMS)
        + [((X,), {"dim": 1, "correction": 0}), ((X, False), {}), ((X, 1, False), {})],
        "std": over([X, V], DIMS) + [((X,), {"dim": 1, "correction": 2}), ((X, [1, 2], True, True), {})],
        "var_mean": over([X, V], DIMS),
        "std_mean": over([X, V], DIMS),
        "linalg.vector_norm": [
            ((X, p), k)
            for p in (0, 0.5, 1, 1.5, 2, 3, float("inf"), -float("inf"))
            for k in ({}, {"dim": 1}, {"dim": (0, 2), "keepdim": True})
        ],
        "logsumexp": over([X, NAN], [{"dim": 0}, {"dim": -1, "keepdim": True}]) + [((X, (0, 1)), {})],
        "median": over([X, V, NAN, X.astype(int)], ONE_DIM),
        "nanmedian": over([X, NAN], ONE_DIM),
        "mode": [((whole(4, 9, low=0, high=3),), {}), ((V,), {"keepdim": True})],
        "quantile": [
            ((X, 0.3), {}),
            ((X, np.array([0.1, 0.5, 0.8])), {"dim": 1}),
            ((X, given([0.0, 1.0])), {"dim": 1}),
            ((NAN, 0.5), {"dim": 1}),
        ]
        + [
            ((X, 0.3), {"dim": -1, "keepdim": True, "interpolation": i})
            for i in ("lower", "higher", "midpoint", "nearest")
        ],
        "nanquantile": [((NAN, 0.5), {}), ((NAN, given([0.0, 0.25])), {"dim": 1}), ((X, 0.4), {"dim": 0})],
        "trace": [((real(3, 4),), {}), ((whole(3, 3),), {})],
        "cumsum": [((X, d), {}) for d in (0, 1, -1)] + [((whole(3, 4), 0), {}), ((S, 0), {})],
        "cumprod": [((V, 0), {}), ((ZEROS, 1), {}), ((ZEROS, 0), {}), ((S, 0), {})],
        "cummax": [((X, 1), {}), ((NAN, 1), {}), ((whole(3, 5, low=0, high=2), 1), {})],
        "cummin": [((X, 1), {}), ((NAN, 1), {})],
        "logcumsumexp": [((X, d), {}) for d in (0, -1)],
        "diff": [
            ((X,), {}),
            ((X, 2, 1), {}),
            ((V,), {"prepend": real(2), "append": real(1)}),
            ((X > 0,), {}),
        ],
        "softmax": [((X, d), {}) for d in (0, 1, -1)]
        + [((real(4, 300), 1), {}), ((real(300, 4), 0), {}), ((S, 0), {})],
        "log_softmax": [((X, d), {}) for d in (0, 1, -1)] + [((real(4, 300), 1), {})],
        "ops.aten.norm": [((X,), {}), ((X, 3, 1), {}), ((X, 1, (0, 1), True), {})]
        + [((X, 2), {"dtype": "dtype:float64"}), ((X, 2, (0,), False), {"dtype": "dtype:float64"})],
        "special.logsumexp": [((X, 1), {})],
        "special.softmax": [((X, 1), {})],
        "special.log_softmax": [((X, 1), {})],
        "frobenius_norm": [((X, (0, 1)), {}), ((X, 1, True), {})],
        "nuclear_norm": [((real(3, 4),), {}), ((X, (0, 1)), {})],
        "nn.functional.softmin": [((X,), {"dim": 1})],
    }
)
