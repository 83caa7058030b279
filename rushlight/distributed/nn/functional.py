"""Collectives that return new tensors and have derivatives, which are collectives again.

Every process must run the backward pass as it ran the forward one.
"""

from __future__ import annotations

from ... import empty_like, zeros_like
from ...autograd import Function
from .. import _collectives as plain
from .._initialize import get_group_rank, get_rank, get_world_size
from .._process_group import _group_or_default, group
from .._reduce_op import ReduceOp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight import Tensor
    from rushlight.distributed._process_group import ProcessGroup


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, src, group, tensor):
        ctx.src, ctx.group = src, group
        ctx.is_source = get_rank(group) == get_group_rank(group, src)
        result = tensor.clone()
        plain.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        total = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, gradient)
        return None, None, total if ctx.is_source else zeros_like(total)


class _Gather(Function):
    @staticmethod
    def forward(ctx, dst, group, tensor):
        ctx.dst, ctx.group = dst, group
        tensor = tensor.contiguous()
        parts = [zeros_like(tensor) for _ in range(get_world_size(group))]
        is_root = get_rank(group) == get_group_rank(group, dst)
        plain.gather(tensor, parts if is_root else None, dst, group)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *gradients):
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *gradients)


class _Scatter(Function):
    @staticmethod
    def forward(ctx, src, group, *tensors):
        ctx.src, ctx.group = src, group
        output = zeros_like(tensors[0])
        is_root = get_rank(group) == get_group_rank(group, src)
        plain.scatter(output, [t.contiguous() for t in tensors] if is_root else None, src, group)
        return output

    @staticmethod
    def backward(ctx, gradient):
        return None, None, *_Gather.apply(ctx.src, ctx.group, gradient)


class _Reduce(Function):
    @staticmethod
    def forward(ctx, dst, op, group, tensor):
        ctx.dst, ctx.group = dst, group
        result = tensor.clone()
        plain.reduce(result, dst, op, group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, gradient)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, op, group, tensor):
        ctx.op, ctx.group = op, group
        result = tensor.clone()
        plain.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        return None, None, _AllReduce.apply(ctx.op, ctx.group, gradient)


class _AllGather(Function):
    @staticmethod
    def forward(ctx, group, tensor):
        ctx.group = group
        tensor = tensor.contiguous()
        parts = [empty_like(tensor) for _ in range(get_world_size(group))]
        plain.all_gather(parts, tensor, group)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *gradients):
        own = get_rank(ctx.group)
        output = empty_like(gradients[own])
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, output, *gradients)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, op, group, output, *inputs):
        ctx.group = group
        result = empty_like(output)
        plain.reduce_scatter(result, [t.contiguous() for t in inputs], op, group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        return None, None, None, *_AllGather.apply(ctx.group, gradient)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, group, outputs, *inputs):
        ctx.group = group
        ctx.shapes = [t.shape for t in inputs]
        results = [empty_like(t) for t in outputs]
        plain.all_to_all(results, [t.contiguous() for t in inputs], group)
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients):
        outputs = [gradients[0].new_empty(shape) for shape in ctx.shapes]
        return None, None, *_AllToAll.apply(ctx.group, outputs, *gradients)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx, group, output, output_split_sizes, input_split_sizes, tensor):
        ctx.group, ctx.shape = group, tensor.shape
        ctx.splits = input_split_sizes, output_split_sizes
        result = empty_like(output)
        plain.all_to_all_single(result, tensor.contiguous(), output_split_sizes, input_split_sizes, group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        output = gradient.new_empty(ctx.shape)
        received, sent = ctx.splits
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, output, received, sent, gradient)


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = group.WORLD):
    """Rank `src`'s tensor, on every rank."""
    return _Broadcast.apply(src, _group_or_default(group), tensor)


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = group.WORLD):
    """The tensors of all ranks, on rank `dst`; zeros elsewhere."""
    return _Gather.apply(dst, _group_or_default(group), tensor)


def scatter(tensors: list[Tensor], src: int = 0, group: ProcessGroup | None = group.WORLD):
    """This rank's tensor of rank `src`'s list."""
    return _Scatter.apply(src, _group_or_default(group), *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: ProcessGroup | None = group.WORLD):
    """The reduction of all ranks' tensors, on rank `dst`."""
    return _Reduce.apply(dst, op, _group_or_default(group), tensor)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: ProcessGroup | None = group.WORLD
):
    """The reduction of all ranks' tensors for this rank; `output` gives its shape."""
    return _ReduceScatter.apply(op, _group_or_default(group), output, *input_list)


def all_gather(tensor: Tensor, group: ProcessGroup | None = group.WORLD):
    """The tensors of all ranks, a tuple."""
    return _AllGather.apply(_group_or_default(group), tensor)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = group.WORLD,
):
    """What each rank has for this one; the output list gives the shapes."""
    return _AllToAll.apply(_group_or_default(group), output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = group.WORLD,
):
    """As `all_to_all`, of the rows of one tensor."""
    return _AllToAllSingle.apply(
        _group_or_default(group), output, output_split_sizes, input_split_sizes, input
    )


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = group.WORLD):
    """The reduction of all ranks' tensors."""
    return _AllReduce.apply(op, _group_or_default(group), tensor)
