"""gradcheck of functions of sparse tensors: the same functions over dense tensors."""

import rushlight


def over_dense_tensors(func, inputs, masked):
    """`func` and its inputs with dense tensors instead of the sparse ones that require grad.

    Masked, these are the values of the elements that are specified; otherwise all elements, so that moving
    one that was not specified specifies it.
    """
    given, makers = list(inputs), {}
    for i, x in enumerate(inputs):
        if isinstance(x, rushlight.Tensor) and x.layout != rushlight.strided and x.requires_grad:
            given[i], makers[i] = _values_of(x) if masked else _elements_of(x)

    def dense(*args):
        return func(*[makers[i](arg) if i in makers else arg for i, arg in enumerate(args)])

    return dense, tuple(given)


def _leaf(t):
    return t.detach().clone(memory_format=rushlight.contiguous_format).requires_grad_()


def _values_of(x):
    if x.layout == rushlight.sparse_coo:
        indices, size, coalesced = x._indices(), x.shape, x.is_coalesced()

        def make(values):
            return rushlight.sparse_coo_tensor(indices, values, size, is_coalesced=coalesced)

        return _leaf(x._values()), make
    by_rows = x.layout in (rushlight.sparse_csr, rushlight.sparse_bsr)
    detached, layout = x.detach(), x.layout
    compressed = detached.crow_indices() if by_rows else detached.ccol_indices()
    plain = detached.col_indices() if by_rows else detached.row_indices()

    def make_compressed(values):
        return rushlight.sparse_compressed_tensor(compressed, plain, values, x.shape, layout=layout)

    return _leaf(detached.values()), make_compressed


def _elements_of(x):
    layout, options = x.layout, {}
    if layout == rushlight.sparse_coo:
        return _leaf(x.to_dense()), lambda elements: elements.to_sparse(x.sparse_dim())
    if layout in (rushlight.sparse_bsr, rushlight.sparse_bsc):
        options["blocksize"] = tuple(x.values().shape[-2:])
    return _leaf(x.to_dense()), lambda elements: elements.to_sparse(layout=layout, **options)
