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
    "cdist": [((real(2, 3, 4), real(5, 4), p), {}) for p in (0.5, 1.0, 2.0, 3.0, float("inf"))],
    "dist": [((real(3, 4), real(4), p), {}) for p in (1, 2, 3)],
    "renorm": [((real(3, 4), 2, 0, 1.0), {})],
    "linalg.inv_ex": [((BATCH,), {})],
    "linalg.solve_ex": [((BATCH, real(2, 3, 2)), {})],
    "linalg.cholesky_ex": [((POSITIVE,), {})],
    "linalg.lu": [((BATCH,), {}), ((real(3, 5),), {}), ((real(5, 3),), {})],
    "linalg.lu_factor": [((BATCH,), {})],
    "linalg.qr": [((BATCH,), {})],
    "linalg.householder_product": [((real(4, 3), real(2) / 3), {})],
    "ormqr": [((real(4, 3), real(3) / 3, real(4, 2)), {})],
    "cholesky_solve": [((real(2, 3, 2), LOWER), {})],
    "cholesky_inverse": [((LOWER,), {})],
    "linalg.lstsq": [((real(4, 3), real(4, 2)), {"driver": "gels"})],
    "matrix_exp": [((BATCH,), {}), ((SQUARE / 100,), {})],
    "linalg.cond": [((SQUARE, p), {}) for p in (None, 1, "fro", "nuc")],
    "linalg.tensorinv": [((real(2, 3, 6) / 9 + np.eye(6).reshape(2, 3, 6),), {})],
    "linalg.tensorsolve": [((real(2, 3, 6) / 9 + np.eye(6).reshape(2, 3, 6), real(2, 3)), {})],
    "linalg.vander": [((real(2, 3),), {"N": 4})],
    "linalg.vecdot": [((real(2, 3), real(2, 3)), {}), ((real(3, 2), real(3, 2)), {"dim": 0})],
    "cov": [((real(3, 5),), {}), ((real(5),), {"correction": 0})],
    "corrcoef": [((real(3, 5),), {})],
}
