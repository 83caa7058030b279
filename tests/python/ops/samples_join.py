"""Rows of joining: name -> list of (args, kwargs)."""

import numpy as np
from rows import fixed_rows
from samples_reduction import S, V, X, real, whole

M = real(3, 4)

ROWS = fixed_rows(
    {
        "cat": [
            (([M, real(2, 4)],), {}),
            (([M, real(3, 1).repeat(2, 1)], 1), {}),
            (([M.T, real(4, 2)], 1), {}),
            (([np.zeros(0), M],), {}),
        ]
        + [(([whole(2, 3), real(1, 3)],), {}), (([X, X], -1), {})],
        "concat": [(([M, M], 1), {})],
        "concatenate": [(([M, M], 1), {})],
        "row_stack": [(([M, M],), {}), (([V, V],), {})],
        "stack": [(([M, M],), {}), (([M, M.copy()], -1), {}), (([M, whole(3, 4)], 1), {}), (([S, S],), {})],
        "hstack": [(([M, M],), {}), (([V, V],), {}), (([S, S],), {})],
        "vstack": [(([M, M],), {}), (([V, V],), {})],
        "dstack": [(([M, M],), {}), (([V, V],), {})],
        "column_stack": [(([V, V],), {}), (([M, M],), {})],
        "combinations": [((V,), {}), ((V, 3), {}), ((real(3), 2, True), {})],
    }
)
