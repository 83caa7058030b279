"""Sparse tensors: COO and compressed matrices (CSR, CSC, BSR, BSC, in batches), with gradients.

A COO tensor lists positions ``indices [sparse_dim, nnz]`` and ``values [nnz, dense sizes...]``; a CSR
matrix row starts, columns and values; the values of BSR are blocks. Operators without a rule for them say
so; ``to_dense`` is the way out."""

from rushlight._command.submodules import submodule as _submodule
from rushlight.sparse._compressed import (
    _sparse_compressed_tensor_with_dims,
    _validate_sparse_bsc_tensor_args,
    _validate_sparse_bsr_tensor_args,
    _validate_sparse_compressed_tensor_args,
    _validate_sparse_csc_tensor_args,
    _validate_sparse_csr_tensor_args,
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from rushlight.sparse._factories import (
    _validate_sparse_coo_tensor_args,
    check_sparse_tensor_invariants,
    sparse_coo_tensor,
)
from rushlight.sparse._functions import (
    addmm,
    as_sparse_gradcheck,
    dsmm,
    hsmm,
    hspmm,
    log_softmax,
    mm,
    saddmm,
    sampled_addmm,
    smm,
    softmax,
    spdiags,
    spmm,
    sspaddmm,
    sum,  # noqa: A004 - PyTorch's name
)

_LEGACY = tuple(f"{name}Tensor" for name in "BFloat16 Byte Char Double Float Half Int Long Short".split())


def __getattr__(name):
    if name in _LEGACY:
        from rushlight.sparse import _legacy

        return getattr(_legacy, name)
    if "SemiStructured" in name or name == "to_sparse_semi_structured":
        from rushlight.sparse import semi_structured

        return getattr(semi_structured, name)
    return _submodule(__name__, name)


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
