"""Comparison of what tensors are, not of what they hold."""

import rushlight as torch

__all__ = ["assert_metadata_eq", "is_sparse_any"]

_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def is_sparse_any(t):
    """Whether a tensor is sparse, in any layout."""
    return t.layout is torch.sparse_coo or t.layout in _COMPRESSED


def _assert_same_places(assert_eq, a, b):
    assert_eq(a.stride(), b.stride())
    assert_eq(a.storage_offset(), b.storage_offset())
    assert_eq(a.is_conj(), b.is_conj())
    assert_eq(a.is_neg(), b.is_neg())


def assert_metadata_eq(assert_eq, m1, m2, *, skip_symbolic=False, skip_leaf=False):
    """`assert_eq` of each property of two tensors, and of the tensors that they are views of.

    Args:
        skip_symbolic: leave sizes, strides and offsets out.
        skip_leaf: leave out whether they are leaves of the graph.
    """
    assert_eq(m1.dtype, m2.dtype)
    assert_eq(m1.layout, m2.layout)
    if not skip_symbolic:
        assert_eq(m1.shape, m2.shape)
    assert_eq(m1.requires_grad, m2.requires_grad)
    if not skip_leaf:
        assert_eq(m1.is_leaf, m2.is_leaf)
    assert_eq(m1.grad is not None, m2.grad is not None)
    if m1.layout is torch.sparse_coo:
        assert_eq((m1.dense_dim(), m1.sparse_dim()), (m2.dense_dim(), m2.sparse_dim()))
        assert_eq(m1.is_coalesced(), m2.is_coalesced())
    elif not is_sparse_any(m1) and not skip_symbolic:
        _assert_same_places(assert_eq, m1, m2)
    if m1.grad is not None:
        assert_metadata_eq(assert_eq, m1.grad, m2.grad, skip_symbolic=skip_symbolic)
    assert_eq(m1._is_view(), m2._is_view())
    if m1._is_view() and m1._base is not None:
        assert_metadata_eq(assert_eq, m1._base, m2._base, skip_symbolic=skip_symbolic, skip_leaf=skip_leaf)
