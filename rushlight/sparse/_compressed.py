"""Compressed sparse tensors (CSR, CSC and their block forms) of given parts, checked."""

import rushlight
from rushlight import _C
from rushlight._command.names import show_from
from rushlight._operators.overridable import overridable
from rushlight.sparse._factories import _finish, _index_tensor, _values

_unsafe_compressed = _C._VariableFunctions._sparse_compressed_tensor_unsafe
_check_indices = _C._VariableFunctions._validate_compressed_sparse_indices

_ROWS = "crow_indices", "col_indices"
_COLUMNS = "ccol_indices", "row_indices"
_NAMES = {"sparse_csr": _ROWS, "sparse_csc": _COLUMNS, "sparse_bsr": _ROWS, "sparse_bsc": _COLUMNS}


def _layout_name(layout):
    return str(layout).rpartition(".")[2]


def _check_index_types(names, compressed, plain):
    if compressed.dtype != plain.dtype:
        raise RuntimeError(
            f"{names[0]} and {names[1]} dtype must match, got {compressed.dtype} and {plain.dtype}"
        )
    if compressed.dtype not in (rushlight.int32, rushlight.int64):
        raise RuntimeError(
            f"{names[0]} and {names[1]} must be an int32 or int64 type, but got: {compressed.dtype}"
        )


def _check_ranks(names, compressed, plain, values, block):
    if compressed.dim() < 1 or plain.dim() < 1:
        raise RuntimeError(f"{names[0]} and {names[1]} must have dimensionality >= 1, but got a number")
    if compressed.dim() != plain.dim():
        raise RuntimeError(
            f"{names[0]} and {names[1]} dimensionalities must be equal but got "
            f"{compressed.dim()} and {plain.dim()}, respectively"
        )
    batch = compressed.shape[:-1]
    if values.dim() < len(batch) + 1 + block:
        raise RuntimeError(
            f"values must have dimensionality >= {len(batch) + 1 + block} (batch, nnz"
            f"{', block' if block else ''}), but got shape {list(values.shape)}"
        )
    if plain.shape[:-1] != batch or values.shape[: len(batch)] != batch:
        raise RuntimeError(
            f"all batch dimensions of {names[0]} ({list(batch)}), {names[1]} ({list(plain.shape[:-1])}) and "
            f"values ({list(values.shape[: len(batch)])}) must be equal"
        )
    if plain.shape[-1] != values.shape[len(batch)]:
        raise RuntimeError(
            f"{names[1]} and values must have same nnz, but got {plain.shape[-1]}, {values.shape[len(batch)]}"
        )


def _check_size(names, compressed, values, size, block_shape, by_rows):
    """How many lines there are and how wide they are, in blocks."""
    batch = compressed.dim() - 1
    dense = tuple(values.shape[batch + 1 + (2 if block_shape != (1, 1) else 0) :])
    if len(size) < 2:
        raise RuntimeError(f"size must be at least 2-dimensional, got {list(size)}")
    if tuple(size[:batch]) != tuple(compressed.shape[:-1]) or len(size) < batch + 2:
        raise RuntimeError(
            f"size {list(size)} must be the batch {list(compressed.shape[:-1])}, two more dimensions and "
            "those of dense values"
        )
    blocks = [n // b for n, b in zip(size[batch : batch + 2], block_shape, strict=True)]
    if any(b < 1 or n % b for n, b in zip(size[batch : batch + 2], block_shape, strict=True)):
        raise RuntimeError(
            f"tensor sparse size {tuple(size[batch : batch + 2])} must be divisible by blocksize "
            f"{block_shape}"
        )
    lines, width = blocks if by_rows else reversed(blocks)
    if compressed.shape[-1] != lines + 1:
        raise RuntimeError(
            f"{names[0]}.shape[-1] must be equal to {lines + 1}, but got {compressed.shape[-1]}"
        )
    return lines, width, dense


def _smallest(compressed, plain, values, block_shape, by_rows):
    batch = compressed.dim() - 1
    lines = compressed.shape[-1] - 1
    width = int(plain.max().item()) + 1 if plain.numel() else 0
    rows, columns = (lines, width) if by_rows else (width, lines)
    dense = tuple(values.shape[batch + 1 + (2 if block_shape != (1, 1) else 0) :])
    return (*compressed.shape[:-1], rows * block_shape[0], columns * block_shape[1], *dense)


def _compressed(layout, compressed, plain, values, size, dtype, device, requires_grad):
    kind = _layout_name(layout)
    names, by_rows, block = _NAMES[kind], kind in ("sparse_csr", "sparse_bsr"), 2 * (kind[7] == "b")
    compressed = _index_tensor(compressed, f"{kind}_tensor: {names[0]}")
    plain = _index_tensor(plain, f"{kind}_tensor: {names[1]}")
    _check_index_types(names, compressed, plain)
    values = _values(values, dtype, device)
    _check_ranks(names, compressed, plain, values, block)
    block_shape = tuple(values.shape[compressed.dim() : compressed.dim() + 2]) if block else (1, 1)
    if size is None:
        size = _smallest(compressed, plain, values, block_shape, by_rows)
    lines, width, _ = _check_size(names, compressed, values, tuple(size), block_shape, by_rows)
    _check_indices(by_rows, compressed, plain, lines, width, plain.shape[-1])
    values = values if values.requires_grad else values.detach()
    tensor = _unsafe_compressed(compressed.detach(), plain.detach(), values, list(size), layout=layout)
    return _finish(tensor, requires_grad)


@overridable
def sparse_compressed_tensor(
    compressed_indices,
    plain_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """A sparse tensor of the compressed `layout`: sparse_csr, sparse_csc, sparse_bsr or sparse_bsc."""
    if layout is None or _layout_name(layout) not in _NAMES:
        raise RuntimeError(
            "expected sparse compressed layout (sparse_csr, sparse_csc, sparse_bsr or sparse_bsc), "
            f"got {layout}"
        )
    return _compressed(layout, compressed_indices, plain_indices, values, size, dtype, device, requires_grad)


@overridable
def sparse_csr_tensor(
    crow_indices,
    col_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """CSR matrices of row starts ``[batch..., rows + 1]``, columns ``[batch..., nnz]`` (sorted in each row)
    and values ``[batch..., nnz, dense sizes...]``.

    Raises ``RuntimeError`` that names the rule which the parts break."""
    layout = rushlight.sparse_csr
    return _compressed(layout, crow_indices, col_indices, values, size, dtype, device, requires_grad)


@overridable
def sparse_csc_tensor(
    ccol_indices,
    row_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """CSC matrices of column starts ``[batch..., columns + 1]``, rows ``[batch..., nnz]`` (sorted in each
    column) and values ``[batch..., nnz, dense sizes...]``."""
    layout = rushlight.sparse_csc
    return _compressed(layout, ccol_indices, row_indices, values, size, dtype, device, requires_grad)


@overridable
def sparse_bsr_tensor(
    crow_indices,
    col_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """CSR whose elements are blocks: values ``[batch..., nnz, block rows, block columns, dense...]``."""
    layout = rushlight.sparse_bsr
    return _compressed(layout, crow_indices, col_indices, values, size, dtype, device, requires_grad)


@overridable
def sparse_bsc_tensor(
    ccol_indices,
    row_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """CSC whose elements are blocks: values ``[batch..., nnz, block rows, block columns, dense...]``."""
    layout = rushlight.sparse_bsc
    return _compressed(layout, ccol_indices, row_indices, values, size, dtype, device, requires_grad)


def _validate_sparse_compressed_tensor_args(
    compressed_indices, plain_indices, values, size, layout, check_pinning=None
):
    """Raises ``RuntimeError`` that names the rule which the parts of a compressed tensor break."""
    sparse_compressed_tensor(compressed_indices, plain_indices, values, size, layout=layout)


def _sparse_compressed_tensor_with_dims(
    nnz, dense_dim, size, blocksize, index_dtype, *, dtype=None, layout=None, device=None, pin_memory=None
):
    """A compressed tensor with room for `nnz` elements or blocks, whose indices and values are zeros."""
    kind, batch = _layout_name(layout), len(size) - 2 - dense_dim
    blocks = tuple(blocksize) if kind.startswith("sparse_b") else ()
    if kind.startswith("sparse_b") and len(blocks) != 2:
        raise RuntimeError(
            "sparse_compressed_tensor_with_dims: blocksize needs to be a tuple of size 2, but got "
            f"{len(blocks)}"
        )
    block = blocks or (1, 1)
    lines = size[batch] // block[0] if _NAMES[kind] is _ROWS else size[batch + 1] // block[1]
    batches = tuple(size[:batch])
    compressed = rushlight.zeros(*batches, lines + 1, dtype=index_dtype, device=device)
    plain = rushlight.zeros(*batches, nnz, dtype=index_dtype, device=device)
    values = rushlight.zeros(*batches, nnz, *blocks, *size[batch + 2 :], dtype=dtype, device=device)
    return _unsafe_compressed(compressed, plain, values, list(size), layout=layout)


def _validate_sparse_csr_tensor_args(crow_indices, col_indices, values, size, check_pinning=None):
    sparse_csr_tensor(crow_indices, col_indices, values, size)


def _validate_sparse_csc_tensor_args(ccol_indices, row_indices, values, size, check_pinning=None):
    sparse_csc_tensor(ccol_indices, row_indices, values, size)


def _validate_sparse_bsr_tensor_args(crow_indices, col_indices, values, size, check_pinning=None):
    sparse_bsr_tensor(crow_indices, col_indices, values, size)


def _validate_sparse_bsc_tensor_args(ccol_indices, row_indices, values, size, check_pinning=None):
    sparse_bsc_tensor(ccol_indices, row_indices, values, size)


show_from(
    "", sparse_compressed_tensor, sparse_csr_tensor, sparse_csc_tensor, sparse_bsr_tensor, sparse_bsc_tensor
)
