"""Rows of operands with sparse parts; what is specific to layouts is in test_sparse*.py."""

import numpy as np
from rows import Sparse, fixed_rows
from samples_reduction import real

M = real(4, 6) * (np.arange(24).reshape(4, 6) % 3 == 0)
COO, CSR, CSC = Sparse(M), Sparse(M, "csr"), Sparse(M, "csc")
BSR, BSC = Sparse(M, "bsr", ((2, 3),)), Sparse(M, "bsc", ((2, 3),))
PARTS = {
    "Tensor.indices": [((COO,), {})],
    "Tensor._indices": [((COO,), {})],
    "Tensor.values": [((COO,), {}), ((CSR,), {}), ((BSC,), {})],
    "Tensor._values": [((COO,), {})],
    "indices_copy": [((COO,), {})],
    "_indices_copy": [((COO,), {})],
    "values_copy": [((COO,), {}), ((CSR,), {})],
    "_values_copy": [((COO,), {})],
    "crow_indices_copy": [((CSR,), {})],
    "col_indices_copy": [((CSR,), {})],
    "ccol_indices_copy": [((CSC,), {})],
    "row_indices_copy": [((CSC,), {})],
    "Tensor._nnz": [((COO,), {}), ((CSC,), {})],
    "Tensor.crow_indices": [((CSR,), {}), ((BSR,), {})],
    "Tensor.col_indices": [((CSR,), {}), ((BSR,), {})],
    "Tensor.ccol_indices": [((CSC,), {}), ((BSC,), {})],
    "Tensor.row_indices": [((CSC,), {}), ((BSC,), {})],
    "Tensor.sparse_dim": [((COO,), {}), ((CSR,), {})],
    "Tensor.dense_dim": [((COO,), {}), ((CSR,), {})],
    "Tensor.is_coalesced": [((COO,), {})],
    "Tensor.coalesce": [((COO,), {})],
    "Tensor.to_dense": [((part,), {}) for part in (COO, CSR, CSC, BSR, BSC)],
    "Tensor.sparse_mask": [((real(4, 6), COO), {})],
    "Tensor.sparse_resize_": [((COO, (5, 7), 2, 0), {})],
    "Tensor.sparse_resize_and_clear_": [((COO, (5, 7), 1, 1), {})],
}
MADE = {
    "Tensor.to_sparse": [((M,), {}), ((M, 1), {}), ((CSR,), {})],
    "Tensor.to_sparse_coo": [((M,), {})],
    "Tensor.to_sparse_csr": [((M,), {}), ((COO,), {})],
    "Tensor.to_sparse_csc": [((M,), {}), ((COO,), {})],
    "Tensor.to_sparse_bsr": [((M, (2, 3)), {})],
    "Tensor.to_sparse_bsc": [((M, (2, 3)), {})],
}
AT = np.array([[0, 1, 3], [2, 0, 5]])
TABLES = {
    "sparse_coo_tensor": [((AT, real(3), (4, 6)), {})],
    "sparse_compressed_tensor": [
        ((np.array([0, 1, 2, 2, 3]), np.array([2, 0, 5]), real(3), (4, 6)), {"layout": "dtype:sparse_csr"})
    ],
    "ops.aten._sparse_coo_tensor_unsafe": [((AT, real(3), (4, 6)), {})],
    "ops.aten._sparse_compressed_tensor_unsafe": [
        ((np.array([0, 1, 2, 2, 3]), np.array([2, 0, 5]), real(3), (4, 6)), {"layout": "dtype:sparse_csr"})
    ],
}
PRODUCTS = {
    "sparse.mm": [((COO, real(6, 2)), {}), ((CSR, real(6, 2)), {}), ((CSR, real(6, 2), "mean"), {})],
    "sparse.addmm": [((real(4, 2), COO, real(6, 2)), {"beta": 0.5, "alpha": 2.0})],
    "sparse.sampled_addmm": [((CSR, real(4, 3), real(3, 6)), {"beta": 0.5, "alpha": 2.0})],
    "ops.aten._sparse_broadcast_to": [((Sparse(real(1, 6)), (4, 6)), {})],
}
DENSE = dict.fromkeys(
    ("layout", "method", "vmap", "gradcheck", "gradients", "forward", "meta", "trace", "unsigned", "fuzz"),
    "the property speaks of dense operands; test_sparse.py of these",
)
ROWS = fixed_rows({**PARTS, **MADE, **TABLES, **PRODUCTS}, refused=DENSE)
