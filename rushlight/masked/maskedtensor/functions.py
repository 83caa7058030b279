"""Steps between plain and masked tensors, through which gradients come back."""

import rushlight as torch
from rushlight.masked.maskedtensor.core import MaskedTensor, is_masked_tensor, places

__all__ = ["AsMasked", "Data", "Result", "ToLayout", "Values", "like"]


def like(mask, values):
    """A plain tensor of these elements at the places that `mask` names."""
    if mask.layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(mask.indices(), values, mask.shape, is_coalesced=True)
    if mask.layout is torch.sparse_csr:
        rows, columns = places(mask)
        return torch.sparse_csr_tensor(rows, columns, values, mask.shape)
    return values


def _plain(gradient):
    """A gradient of which masked-out elements are 0."""
    return gradient.to_tensor(0) if is_masked_tensor(gradient) else gradient


class Data(torch.autograd.Function):
    """The values of a masked tensor."""

    @staticmethod
    def forward(ctx, masked):
        ctx.mask = masked._masked_mask
        return masked._masked_data.detach()

    @staticmethod
    def backward(ctx, gradient):
        if is_masked_tensor(gradient):
            return gradient
        if ctx.mask.layout is not gradient.layout:
            return Result.apply(gradient.to_dense(), ctx.mask.to_dense())._to_layout(ctx.mask.layout)
        return Result.apply(gradient, ctx.mask)


class Values(torch.autograd.Function):
    """The elements that a sparse masked tensor has, in one dimension."""

    @staticmethod
    def forward(ctx, masked):
        ctx.mask = masked._masked_mask
        return masked._masked_data.values().detach().clone()

    @staticmethod
    def backward(ctx, gradient):
        return MaskedTensor._of(like(ctx.mask, _plain(gradient)), ctx.mask)


class AsMasked(torch.autograd.Function):
    """What a program masks; gradients go to its tensor as they are."""

    @staticmethod
    def forward(ctx, data, mask):
        return MaskedTensor(data.detach(), mask)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Result(torch.autograd.Function):
    """What was computed of plain tensors, with a mask."""

    @staticmethod
    def forward(ctx, data, mask):
        return MaskedTensor._of(data.detach(), mask)

    @staticmethod
    def backward(ctx, gradient):
        return _plain(gradient), None


class ToLayout(torch.autograd.Function):
    """A masked tensor in another layout: a sparse one names the elements that are there."""

    @staticmethod
    def forward(ctx, masked, layout):
        ctx.layout = masked.layout
        data, mask = masked._masked_data.to_dense(), masked._masked_mask.to_dense()
        if layout is torch.strided:
            return MaskedTensor._of(data, mask)
        mask = mask.to_sparse_coo().coalesce() if layout is torch.sparse_coo else mask.to_sparse_csr()
        return MaskedTensor._of(data.sparse_mask(mask), mask)

    @staticmethod
    def backward(ctx, gradient):
        return gradient._to_layout(ctx.layout), None
