"""Rows of the factorisations and of einsum; see samples_reduction.py. Results here are unique."""

import numpy as np
from rows import fixed_rows, given
from samples_reduction import real


def uneven(*shape):
    """Values whose sums differ: the largest row sum is one row's."""
    return np.sign(values := real(*shape)) * np.abs(values) ** 1.1


SPECTRUM = real(2, 5, 9) + 1j * np.r_[np.zeros((1, 9)), real(3, 9), np.zeros((1, 9))]
SQUARE = real(3, 3) / 3 + 3 * np.eye(3)
BATCH = real(2, 3, 3) / 5 + 3 * np.eye(3)
POSITIVE = BATCH @ BATCH.transpose(0, 2, 1)
LOWER = np.tril(BATCH)

# Of a matrix that is read in part: gradients are those along symmetric, or along triangular, matrices.
OF_PARTS = {
    "linalg.cholesky": [((POSITIVE,), {}), ((POSITIVE,), {"upper": True})],
    "linalg.cholesky_ex": [((POSITIVE,), {})],
    "linalg.eigvalsh": [((POSITIVE,), {})],
    "cholesky": [((POSITIVE,), {}), ((POSITIVE, True), {})],
    "triangular_solve": [((real(2, 3, 2), LOWER, False), {})],
    "cholesky_solve": [((real(2, 3, 2), LOWER), {})],
    "cholesky_inverse": [((LOWER,), {})],
}
# Signs, and the order of complex values, are left open; what does not depend on them is compared elsewhere.
FACTORS = {
    "linalg.eigh": [((POSITIVE,), {})],
    "linalg.eig": [((SQUARE,), {})],
    "linalg.svd": [((real(3, 4),), {"full_matrices": False})],
    "svd": [((real(3, 4),), {})],
}
OPEN = dict.fromkeys(
    ("values", "gradcheck", "gradients", "forward", "layout", "vmap", "fuzz"),
    "signs of vectors are left open; test_linalg.py multiplies the factors",
)
PIVOTED = {
    "_lu_with_info": [((BATCH,), {})],
    "linalg.lu_solve": [((BATCH, np.array([[1, 2, 3]] * 2, np.int32), real(2, 3, 2)), {})],
    "lu_solve": [((real(2, 3, 2), BATCH, np.array([[1, 2, 3]] * 2, np.int32)), {})],
}
WITHOUT_DERIVATIVE = {
    "linalg.ldl_factor": [((POSITIVE,), {})],
    "linalg.ldl_factor_ex": [((POSITIVE,), {})],
    "linalg.ldl_solve": [((POSITIVE, np.array([[1, 2, 3]] * 2, np.int32), real(2, 3, 2)), {})],
    "geqrf": [((real(4, 3),), {})],
}
PARTS = {"gradcheck": "half of the matrix is not read; test_linalg_gradients.py checks along such matrices"}

TABLE = {
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
    "linalg.svdvals": [((real(2, 3, 4),), {}), ((real(4, 3),), {})],
    "linalg.pinv": [((real(4, 3),), {})],
    "linalg.matrix_norm": [((uneven(2, 3, 4), p), {}) for p in ("fro", "nuc", float("inf"), -1, 2)],
    "linalg.norm": [((real(3, 4),), {}), ((real(3, 4), 1), {"dim": 0})],
    "linalg.matrix_power": [((SQUARE, n), {}) for n in (1, 3, -2)],
    "linalg.multi_dot": [(([real(3, 4), real(4, 2), real(2, 5)],), {})],
    "linalg.cross": [((real(4, 3), real(4, 3)), {})],
    "kron": [((real(2, 3), real(3, 2)), {}), ((real(2), real(2, 2)), {})],
    "cdist": [((uneven(2, 3, 4), uneven(5, 4) + 0.1, p), {}) for p in (0.5, 1.0, 2.0, 3.0, float("inf"))],
    "dist": [((real(3, 4), real(4) + 0.1, p), {}) for p in (1, 2, 3)],
    "renorm": [((real(3, 4), 2, 0, 1.0), {})],
    "linalg.inv_ex": [((BATCH,), {})],
    "linalg.solve_ex": [((BATCH, real(2, 3, 2)), {})],
    "linalg.lu": [((BATCH,), {}), ((real(3, 5),), {}), ((real(5, 3),), {})],
    "linalg.lu_factor": [((BATCH,), {})],
    "linalg.qr": [((BATCH,), {})],
    "linalg.householder_product": [((real(4, 3), real(2) / 3), {})],
    "ormqr": [((real(4, 3), real(3) / 3, real(4, 2)), {})],
    "linalg.lstsq": [((real(4, 3), real(4, 2)), {"driver": "gels"})],
    "matrix_exp": [((BATCH,), {}), ((SQUARE / 100,), {})],
    "linalg.cond": [((SQUARE, p), {}) for p in (None, 1, "fro", "nuc")],
    "linalg.tensorinv": [((real(2, 3, 6) / 9 + np.eye(6).reshape(2, 3, 6),), {})],
    "linalg.tensorsolve": [((real(2, 3, 6) / 9 + np.eye(6).reshape(2, 3, 6), real(2, 3)), {})],
    "linalg.vander": [((real(2, 3),), {"N": 4})],
    "linalg.vecdot": [((real(2, 3), real(2, 3)), {}), ((real(3, 2), real(3, 2)), {"dim": 0})],
    "qr": [((BATCH,), {})],
    "orgqr": [((real(4, 3), real(2) / 3), {})],
    "pinverse": [((real(4, 3),), {})],
    "linalg.matrix_rank": [((BATCH,), {}), ((SQUARE, 0.1), {}), ((BATCH,), {"atol": 0.5, "rtol": 0.1})]
    + [((BATCH, given([0.1, 9.0])), {}), ((BATCH,), {"rtol": given([0.1, 0.9])})],
    "matrix_power": [((SQUARE, 3), {})],
    "cross": [((real(4, 3), real(4, 3)), {"dim": 1})],
    "linalg.diagonal": [((BATCH,), {}), ((SQUARE,), {"offset": 1})],
    "linalg.matmul": [((SQUARE, BATCH), {})],
    "linalg.eigvals": [((SQUARE,), {})],
    "pdist": [((real(5, 3) + 0.1 * real(5, 3) ** 2, p), {}) for p in (0.5, 1.0, 2.0, 3.0, float("inf"))],
    "stft": [
        ((real(40), 8), {"return_complex": True, "window": given(np.ones(8))}),
        ((real(2, 40), 8, 3, 6), {"return_complex": True, "window": given(np.hanning(6) + 0.1)}),
    ],
    "istft": [((SPECTRUM, 8), {}), ((SPECTRUM, 8, 3), {"length": 20})],
    "cov": [((real(3, 5),), {}), ((real(5),), {"correction": 0})],
    "corrcoef": [((real(3, 5),), {})],
}
ROWS = [
    *fixed_rows({**TABLE, **PIVOTED, **WITHOUT_DERIVATIVE}),
    *fixed_rows(OF_PARTS, refused=PARTS),
    *fixed_rows(FACTORS, refused=OPEN),
]
