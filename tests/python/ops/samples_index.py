"""Rows of indexing, scattering and repetition: name -> list of (args, kwargs)."""

import numpy as np
from rows import fixed_rows, given
from samples_reduction import S, V, X, real, whole

AT = np.array([2, 0, 2])
GRID = np.array([[0, 2, 1], [1, 1, 0]])
DISTINCT = np.array([[0, 2, 1], [1, 3, 0]])
MASK = whole(3, 4, 5, low=0, high=2).astype(bool)
M = real(3, 4)

TABLE = {
    "index_select": [((X, 0, AT), {}), ((X, 1, AT), {}), ((X, -1, AT), {}), ((S, 0, np.array([0])), {})],
    "gather": [((M, 0, GRID), {}), ((M, 1, GRID), {}), ((X, 2, np.zeros((3, 4, 1), dtype=int)), {})],
    "take": [((M, GRID), {}), ((M, np.array(-1)), {})],
    "take_along_dim": [((M, GRID[:1], 1), {}), ((M, GRID), {})],
    "scatter": [
        ((M, 0, GRID, real(2, 3)), {}),
        ((M, 1, DISTINCT, real(4, 5)), {}),
        ((M, 1, GRID, 2.5), {}),
    ],
    "scatter_add": [((M, 0, GRID, real(2, 3)), {}), ((M, 1, GRID, real(4, 5)), {})],
    "scatter_reduce": [
        ((M, d, GRID, real(2, 3), r), {"include_self": i})
        for d in (0, 1)
        for r in ("sum", "prod", "mean", "amax", "amin", "max", "min")
        for i in (True, False)
    ],
    "index_add": [((M, 0, AT, real(3, 4)), {}), ((M, 1, AT, real(3, 3)), {"alpha": 2})],
    "index_copy": [((M, 0, np.array([2, 0]), real(2, 4)), {}), ((M, 1, np.array([1]), real(3, 1)), {})],
    "index_fill": [((M, 0, AT, 1.5), {}), ((M, 1, np.array([-1]), S), {})],
    "index_reduce": [
        ((M, 0, AT, real(3, 4), r), {"include_self": i})
        for r in ("prod", "mean", "amax", "amin")
        for i in (True, False)
    ],
    "index_put": [
        ((M, (AT[:2],), real(2, 4)), {}),
        ((M, (AT,), real(4)), {"accumulate": True}),
        ((X, (AT[:2], AT[:2]), real(2, 5)), {}),
    ]
    + [((X, (MASK,), S), {})],
    "masked_select": [((X, MASK), {}), ((X, MASK[0, 0]), {})],
    "masked_scatter": [((X, MASK, real(80)), {}), ((X, MASK[0], real(100)), {})],
    "nonzero": [((MASK,), {}), ((whole(3, 4, low=0, high=2),), {}), ((S,), {})],
    "argwhere": [((MASK,), {})],
    "ops.aten.nonzero_numpy": [((MASK,), {})],
    "nonzero_static": [((MASK,), {"size": 4}), ((MASK,), {"size": 90, "fill_value": -2})],
    "roll": [((X, 2), {}), ((X, (1, -1), (0, 2)), {}), ((X, 7, 1), {})],
    "tile": [((M, (2,)), {}), ((V, (2, 3)), {})],
    "Tensor.repeat": [((M, 2, 1), {}), ((V, 2, 3), {}), ((M, 0, 1), {}), ((S, 2), {})],
    "repeat_interleave": [
        ((M, 2), {}),
        ((M, 3, 1), {}),
        ((M, np.array([1, 0, 2]), 0), {}),
        ((np.array([2, 0, 1]),), {}),
    ],
}
# Their gradients are refused, as in PyTorch: `scatter_reduce` has them.
REDUCED = {
    "scatter": [
        ((M, 0, GRID, 2.5), {"reduce": "add"}),
        ((M, 0, GRID, given(real(2, 3))), {"reduce": "multiply"}),
    ],
}
NO_GRADIENT = dict.fromkeys(
    ("gradcheck", "gradgradcheck", "gradients", "forward"), "refused, as in PyTorch: scatter_reduce has one"
)
# Which of several values is kept is left open; their gradients are as if each were.
OVERWRITTEN = {
    "scatter": [((M, 1, GRID, real(4, 5)), {})],
    "index_put": [((M, (AT,), real(3, 4)), {}), ((X, (AT, AT), real(3, 5)), {})],
}
SEVERAL = dict.fromkeys(
    ("gradcheck", "gradgradcheck", "device_values"), "several values are written to one position"
)
NO_CLASSES = "the number of classes is read from the values"
ROWS = [
    *fixed_rows(TABLE),
    *fixed_rows(REDUCED, refused=NO_GRADIENT),
    *fixed_rows(OVERWRITTEN, refused=SEVERAL),
    *fixed_rows({"nn.functional.one_hot": [((GRID, 5), {})]}),
    *fixed_rows({"nn.functional.one_hot": [((GRID,), {})]}, refused={"meta": NO_CLASSES}),
]
