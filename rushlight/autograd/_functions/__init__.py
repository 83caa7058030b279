"""Older autograd functions, and helpers on shapes, under the names that programs import them by."""

import math

import rushlight
from rushlight.autograd.function import Function

__all__ = ["Resize", "Type"]


class Type(Function):
    """`Tensor.type`, as a function of its own."""

    @staticmethod
    def forward(ctx, i, dest_type):
        ctx.input_type = i.dtype
        return i.type(dest_type)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.to(ctx.input_type), None


class Resize(Function):
    """Another shape of as many elements."""

    @staticmethod
    def forward(ctx, tensor, sizes):
        if tensor.numel() != math.prod(sizes):
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({math.prod(sizes)} elements in total), "
                f"but the given tensor has a size of {'x'.join(map(str, tensor.size()))} ({tensor.numel()} "
                "elements). autograd's resize can only change the shape of a given tensor, while preserving "
                "the number of elements. "
            )
        ctx.input_sizes = tensor.size()
        return tensor.clone(memory_format=rushlight.contiguous_format).view(*sizes)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.reshape(ctx.input_sizes), None
