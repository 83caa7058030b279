"""Sparse tensors: COO and compressed matrices (CSR, CSC), with gradients.

A COO tensor lists positions ``indices [sparse_dim, nnz]`` and ``values [nnz, dense sizes...]``; a CSR
matrix row starts,
columns and values. Operators without a rule for them say so; ``to_dense`` is the way out."""

from rushlight.sparse._factories import (
    check_sparse_tensor_invariants,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from rushlight.sparse._functions import (
    addmm,
    as_sparse_gradcheck,
    hspmm,
    log_softmax,
    mm,
    sampled_addmm,
    smm,
    softmax,
    spdiags,
    sspaddmm,
    sum,  # noqa: A004 - PyTorch's name
)

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]
