"""Masked reductions of sparse tensors, and where masks are sparse.

Elements that a sparse mask does not name are masked out. Reductions are computed densely; the result has the
layout of the input and names the slices in which the mask leaves anything.
"""

import functools

import rushlight as torch

_LAYOUTS = (torch.sparse_coo, torch.sparse_csr)


def dense(t):
    """The tensor with all its elements; None stays None."""
    return t if t is None or t.layout is torch.strided else t.to_dense()


def _specified(mask, values):
    """What `values` has where the mask is True, as a sparse tensor."""
    at = mask.nonzero().t()
    picked = values[tuple(at)] if mask.dim() else values.reshape(1)[: at.size(1)]
    return torch.sparse_coo_tensor(at, picked, values.shape, is_coalesced=True)


def in_layout(layout, mask, values):
    """A dense result where `mask` is True; None is everywhere but at zeros."""
    if mask is None:
        sparse = values.to_sparse()
    else:
        sparse = _specified(mask, values)
    return sparse if layout is torch.sparse_coo else sparse.to_sparse_csr()


def reduces(function):
    """Mark a masked function whose result has one element for each slice along `dim`."""
    function.reduces = True
    return function


def keeps_shape(function):
    """Mark a masked function whose result has an element for each of the operand's."""
    function.reduces = False
    return function


def of_any_layout(*, needs_mask=()):
    """Let a reduction take sparse tensors and sparse masks; a tensor in one of these layouts needs a mask."""

    def decorate(reduce):
        @functools.wraps(reduce)
        def reduced(input, *args, mask=None, **kwargs):
            from rushlight.masked import _ops

            layout = getattr(input, "layout", torch.strided)
            if isinstance(input, _ops.MaskedTensor) or layout is torch.strided:
                return reduce(input, *args, mask=dense(mask), **kwargs)
            name = reduce.__name__
            if layout not in _LAYOUTS:
                raise ValueError(
                    f"masked {name} expects a strided, sparse_coo or sparse_csr tensor, got {layout}"
                )
            if mask is None and layout in needs_mask:
                kind = str(layout).removeprefix("torch.")
                raise ValueError(f"masked {name} expects explicit mask for {kind} tensor input")
            if layout is torch.sparse_csr and not kwargs.get("keepdim"):
                raise ValueError("reduction operations on CSR tensors with keepdim=False is unsupported")
            values, mask = input.to_dense(), dense(mask)
            result = reduce(values, *args, mask=mask, **kwargs)
            found = None if mask is None else _ops._output_mask(reduced, values, *args, mask=mask, **kwargs)
            return in_layout(layout, found, result)

        return reduces(reduced)

    return decorate


def where(mask, input, fill_value):
    """`input` where the mask is True; a sparse result names what the mask names, or its rows."""
    if mask.layout is torch.strided:
        return torch.where(mask, input, fill_value)
    if mask.layout is torch.sparse_csr:
        return where(mask.to_sparse(), input, fill_value).to_sparse_csr()
    mask, values = mask.coalesce(), dense(input)
    if mask.dense_dim() == 0:
        return _specified(mask.to_dense(), values)
    at = mask.indices()
    picked = torch.where(mask.values(), values[tuple(at)], fill_value)
    return torch.sparse_coo_tensor(at, picked, values.shape, is_coalesced=True)
