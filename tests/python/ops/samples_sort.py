"""Rows of sorting, searching, counting and distinct values: name -> list of (args, kwargs)."""

import numpy as np
from rows import fixed_rows
from samples_reduction import NAN, S, V, X, real, whole

SORTED = np.sort(real(6))

TABLE = {
    "sort": [((X,), {}), ((X, 0), {"descending": True}), ((NAN,), {}), ((NAN, 1, True), {}), ((S,), {})]
    + [((whole(4, 9, low=0, high=3),), {"stable": True, "dim": 0}), ((real(3000),), {})],
    "argsort": [((X,), {}), ((X, 1, True), {}), ((whole(40, low=0, high=3),), {"stable": True})],
    "msort": [((X,), {})],
    "topk": [((X, 2), {}), ((X, 2, 0), {}), ((X, 3, 1, False), {}), ((real(5000), 7), {}), ((S, 1), {})],
    "kthvalue": [((X, 2), {}), ((X, 1, 0), {"keepdim": True}), ((V, 7), {}), ((S, 1), {})],
    "searchsorted": [
        ((SORTED, real(3, 4)), {}),
        ((SORTED, real(5)), {"right": True}),
        ((SORTED, real(5)), {"side": "right"}),
    ]
    + [((np.sort(real(3, 6), axis=1), real(3, 2)), {"out_int32": True}), ((SORTED, 0.5), {})],
    "bucketize": [((real(3, 4), SORTED), {}), ((real(3, 4), SORTED), {"right": True})],
    "isin": [((whole(4, 5), whole(3)), {}), ((whole(4, 5), whole(3)), {"invert": True})],
    "bincount": [
        ((whole(20, low=0, high=6),), {}),
        ((whole(20, low=0, high=6),), {"minlength": 9}),
        ((whole(4, low=0, high=3), real(4)), {}),
    ],
    "ops.aten.unique_dim": [
        ((whole(6, 2, low=0, high=3), 0, True, True, True), {}),
        ((whole(2, 6, low=0, high=2), 1, True, True, True), {}),
    ],
    "histc": [((V,), {"bins": 4}), ((V,), {"bins": 3, "min": -1, "max": 2})],
}
COUNTED = {
    "histogram": [((V, 4), {}), ((V, np.linspace(-3, 3, 5)), {"weight": np.abs(real(7)), "density": True})]
}
NARROW = {"trace": "the range is read", "fuzz": "halves are refused here"}
ROWS = [*fixed_rows(TABLE), *fixed_rows(COUNTED, refused=NARROW)]
