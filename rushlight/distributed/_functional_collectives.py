"""Collectives that return new tensors, and that gradients flow through."""

import rushlight as torch
from rushlight import distributed

__all__ = ["all_to_all_single_autograd", "wait_tensor"]


def wait_tensor(tensor):
    """The tensor, once its collective has ended: those of here have ended when they return."""
    return tensor


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, received, sent, group):
        ctx.parts = received, sent, group
        rows = x.shape[0] if received is None else sum(received)
        out = x.new_empty((rows, *x.shape[1:]))
        distributed.all_to_all_single(out, x.contiguous(), received, sent, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        received, sent, group = ctx.parts
        return _AllToAll.apply(grad, sent, received, group), None, None, None


def all_to_all_single_autograd(self, output_split_sizes, input_split_sizes, group, tag=""):
    """Send a part of the rows to each process and join what they sent; gradients travel back."""
    return _AllToAll.apply(self, output_split_sizes, input_split_sizes, group)
