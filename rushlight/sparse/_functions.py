"""Functions of torch.sparse, written on indices and values so that gradients follow."""

import rushlight
from rushlight._command.names import show_from
from rushlight._operators.overridable import overridable
from rushlight.sparse._factories import _unsafe_coo

_builtin_sum = sum


def _is_sparse(t):
    return t.layout != rushlight.strided


def mm(mat1, mat2, reduce=None):
    """The product of two matrices of which at least one is sparse; a sparse one gets a sparse gradient.
    `reduce` says what becomes of the products of each row of a CSR `mat1`: "sum", "mean", "amax" or "max",
    "amin" or "min"."""
    if reduce is None:
        return rushlight._sparse_mm(mat1, mat2)
    return rushlight._sparse_mm_reduce_impl(mat1, mat2, reduce)[0]


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """``beta * mat + alpha * (mat1 @ mat2)`` with a sparse `mat1`, which gets a sparse gradient."""
    return rushlight._sparse_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


@overridable
def dsmm(input, mat2):
    """The product of two matrices of which one may be sparse."""
    return rushlight.mm(input, mat2)


spmm = dsmm


def _stored(result, out):
    """`result`, or the sparse tensor `out` with its contents."""
    if out is None:
        return result
    if not out.is_sparse:
        raise RuntimeError(f"expected out= to be a sparse COO tensor, got one of layout {out.layout}")
    out.sparse_resize_and_clear_(result.shape, result.sparse_dim(), result.dense_dim())
    return out.copy_(result)


@overridable
def saddmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    """``beta * input + alpha * (mat1 @ mat2)``, where `mat1` may be sparse."""
    if input.is_sparse:
        return sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha, out=out)
    return rushlight.addmm(input, mat1, mat2, beta=beta, alpha=alpha, out=out)


@overridable
def smm(input, mat):
    """A sparse matrix times a dense one, as a sparse tensor."""
    return rushlight.mm(input, mat).to_sparse()


@overridable
def hspmm(mat1, mat2, *, out=None):
    """A sparse matrix times a dense one: rows that are not zero, as a tensor with one sparse dimension."""
    return _stored(rushlight.mm(mat1, mat2).to_sparse(1), out)


hsmm = hspmm


@overridable
def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    """``beta * input + alpha * (mat1 @ mat2)`` with sparse `input` and `mat1`, as a sparse tensor."""
    return _stored(input * beta + (rushlight.mm(mat1, mat2) * alpha).to_sparse(), out)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """``beta * input + alpha * (mat1 @ mat2)`` at the positions of the CSR matrix `input` alone."""
    return rushlight._sparse_sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha, out=out)


def _listed(input):
    """The listed values, inside the graph."""
    return (input.coalesce() if input.layout == rushlight.sparse_coo else input).values()


def sum(input, dim=None, dtype=None):  # noqa: A001 - PyTorch's name
    """The sum over all elements (a dense number) or over `dim`: sparse while a sparse dimension is left."""
    input = input if dtype is None else input.to(dtype)
    if dim is None:
        return _listed(input).sum()
    dims = {d % input.dim() for d in ([dim] if isinstance(dim, int) else dim)}
    if input.layout != rushlight.sparse_coo:
        input = input.to_sparse(layout=rushlight.sparse_coo)
    input = input.coalesce()
    sparse_dim, values = input.sparse_dim(), input.values()
    dense = sorted(d - sparse_dim + 1 for d in dims if d >= sparse_dim)
    values = values.sum(dense) if dense else values
    kept = [d for d in range(sparse_dim) if d not in dims]
    if not kept:
        return values.sum(0)
    size = [n for d, n in enumerate(input.shape) if d not in dims]
    return _unsafe_coo(input._indices()[kept], values, size).coalesce()


def _groups(indices, size, dim):
    """Of each element the number of its line along a sparse dimension, and how many lines there are."""
    others = [d for d in range(indices.shape[0]) if d != dim]
    flat = rushlight.zeros(indices.shape[1], dtype=rushlight.int64)
    for d in others:
        flat = flat * size[d] + indices[d]
    unique, group = flat.unique(return_inverse=True)
    return group, unique.numel()


def _softmax(input, dim, dtype, log):
    if input.layout != rushlight.sparse_coo:
        raise RuntimeError(f"sparse softmax: expected a sparse_coo tensor, got {input.layout}")
    input = (input if dtype is None else input.to(dtype)).coalesce()
    dim = dim % input.dim()
    values, sparse_dim = input.values(), input.sparse_dim()
    if dim >= sparse_dim:
        function = rushlight.log_softmax if log else rushlight.softmax
        values = function(values, dim - sparse_dim + 1)
    elif values.shape[0]:
        group, n = _groups(input.indices(), input.shape, dim)
        shape = (n, *values.shape[1:])
        index = group.view(-1, *[1] * (values.dim() - 1)).expand_as(values)
        top = values.new_full(shape, float("-inf")).scatter_reduce(0, index, values.detach(), "amax")
        shifted = values - top[group]
        total = values.new_zeros(shape).index_add(0, group, shifted.exp())[group]
        values = shifted - total.log() if log else shifted.exp() / total
    return _unsafe_coo(input.indices(), values, list(input.shape), is_coalesced=True)


def softmax(input, dim, *, dtype=None):
    """Softmax of the listed elements along `dim`; the others count as minus infinity."""
    return _softmax(input, dim, dtype, log=False)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of :func:`softmax`."""
    return _softmax(input, dim, dtype, log=True)


def spdiags(diagonals, offsets, shape, layout=None):
    """A sparse matrix with the rows of `diagonals` on the diagonals `offsets`: row k puts its element j in
    column j."""
    if len(shape) != 2:
        raise RuntimeError(f"Output shape must be 2d, got {list(shape)}")
    diagonals = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    offsets = offsets.reshape(-1)
    if diagonals.shape[0] != offsets.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({diagonals.shape[0]}) does not match the number of offsets "
            f"({offsets.shape[0]})"
        )
    if offsets.unique().numel() != offsets.numel():
        raise RuntimeError("Offset tensor contains duplicate values")
    columns = rushlight.arange(diagonals.shape[1]).expand_as(diagonals)
    rows = columns - offsets.unsqueeze(1)
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    indices = rushlight.stack([rows[inside], columns[inside]])
    result = rushlight.sparse_coo_tensor(indices, diagonals[inside], shape)
    return result if layout is None else result.to_sparse(layout=layout)


def as_sparse_gradcheck(gradcheck):
    """`gradcheck` for functions of sparse tensors: it sees their values, the function the sparse tensors."""

    def checked(func, inputs, **kwargs):
        inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        kwargs.pop("masked", None)
        patterns = [i.detach() if rushlight.is_tensor(i) and _is_sparse(i) else None for i in inputs]
        plain = [
            i.detach()._values().clone().requires_grad_(i.requires_grad) if p is not None else i
            for i, p in zip(inputs, patterns, strict=True)
        ]

        def dense(*args):
            made = [a if p is None else _rebuilt(p, a) for a, p in zip(args, patterns, strict=True)]
            results = func(*made)
            single = rushlight.is_tensor(results)
            shown = [r.to_dense() if _is_sparse(r) else r for r in ([results] if single else results)]
            return shown[0] if single else tuple(shown)

        return gradcheck(dense, tuple(plain), **kwargs)

    return checked


def _rebuilt(pattern, values):
    """The sparse tensor with other values."""
    if pattern.layout == rushlight.sparse_coo:
        return _unsafe_coo(
            pattern._indices(), values, list(pattern.shape), is_coalesced=pattern.is_coalesced()
        )
    by_rows = pattern.layout in (rushlight.sparse_csr, rushlight.sparse_bsr)
    parts = (
        (pattern.crow_indices(), pattern.col_indices())
        if by_rows
        else (pattern.ccol_indices(), pattern.row_indices())
    )
    return rushlight.sparse_compressed_tensor(*parts, values, pattern.shape, layout=pattern.layout)


show_from("", dsmm, hspmm, saddmm, smm, sspaddmm)
show_from("sparse", mm, addmm, sampled_addmm, sum, softmax, log_softmax, spdiags, as_sparse_gradcheck)
