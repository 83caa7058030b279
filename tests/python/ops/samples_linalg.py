"""Rows of the factorisations and of einsum; see samples_reduction.py. Results here are unique."""

import numpy as np
from samples_reduction import real

SQUARE = real(3, 3) / 3 + 3 * np.eye(3)
BATCH = real(2, 3, 3) / 5 + 3 * np.eye(3)
POSITIVE = BATCH @ BATCH.transpose(0, 2, 1)
LOWER = np.tril(BATCH)

ROWS = {
    "einsum": [
        (("ij,jk->ik", real(2, 3), real(3, 4)), {}),
        (("...ij,...jk", real(2, 1, 3, 4), real(5, 4, 2)), {}),
        (("bn,anm,bm->ba", real(2, 5), real(3, 5, 4), real(2, 4)), {}),
        (("ii->i", real(3, 3)), {}),
        (("ijk->", real(2, 3, 4)), {}),
    ],
    "linalg.det": [((SQUARE,), {}), ((BATCH,), {})],
    "linalg.slogdet": [((BATCH,), {})],
    "linalg.inv": [((SQUARE,), {}), ((BATCH,), {})],
    "linalg.solve": [
        ((BATCH, real(2, 3, 2)), {}),
        ((SQUARE, real(3)), {}),
        ((SQUARE, real(2, 3)), {"left": False}),
    ],
    "linalg.solve_triangular": [
        ((LOWER, real(2, 3, 2)), {"upper": False}),
        ((LOWER, real(2, 2, 3)), {"upper": False, "left": False}),
    ],
    "linalg.cholesky": [((POSITIVE,), {}), ((POSITIVE,), {"upper": True})],
    "linalg.eigvalsh": [((POSITIVE,), {})],
    "linalg.svdvals": [((real(2, 3, 4),), {}), ((real(4, 3),), {})],
    "linalg.pinv": [((real(4, 3),), {})],
    "linalg.matrix_norm": [((real(2, 3, 4), p), {}) for p in ("fro", "nuc", float("inf"), -1, 2)],
    "linalg.norm": [((real(3, 4),), {}), ((real(3, 4), 1), {"dim": 0})],
    "linalg.matrix_power": [((SQUARE, n), {}) for n in (1, 3, -2)],
    "linalg.multi_dot": [(([real(3, 4), real(4, 2), real(2, 5)],), {})],
    "linalg.cross": [((real(4, 3), real(4, 3)), {})],
    "kron": [((real(2, 3), real(3, 2)), {}), ((real(2), real(2, 2)), {})],
    "cdist": [((real(3, 4), real(5, 4)), {})],
}
