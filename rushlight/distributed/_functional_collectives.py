"""Collectives that return new tensors, and that gradients flow through where their names say so.

A group is a process group, its name, a 1-d mesh, or a pair (mesh, dimension). Those of here have ended when
they return.
"""

import rushlight as torch
from rushlight import distributed
from rushlight.distributed._process_group import _group_or_default
from rushlight.distributed._reduce_op import ReduceOp

__all__ = [
    "AsyncCollectiveTensor",
    "all_gather_tensor",
    "all_gather_tensor_autograd",
    "all_reduce",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd",
    "wait_tensor",
]

_watchers: list = []  # called with (name of collective, tensor) for each one that runs


class AsyncCollectiveTensor(torch.Tensor):
    """The class that results under way would have; results of here are plain tensors."""


def wait_tensor(tensor):
    """The tensor, once its collective has ended: those of here have ended when they return."""
    return tensor


def _group(group):
    if isinstance(group, str):
        return distributed._resolve_process_group(group)
    if isinstance(group, tuple) and len(group) == 2 and hasattr(group[0], "get_group"):
        return group[0].get_group(group[1])
    if hasattr(group, "get_group") and hasattr(group, "mesh"):
        return group.get_group()
    if isinstance(group, (list, tuple)):
        return distributed._find_pg_by_ranks_and_tag("", list(group))
    return _group_or_default(group)


def _operation(name):
    return getattr(ReduceOp, name.upper()) if isinstance(name, str) else name


def _tell(name, tensor):
    for watcher in _watchers:
        watcher(name, tensor)


def broadcast(self, src, group, tag=""):
    """The tensor of global rank `src`."""
    _tell("broadcast", self)
    result = self.detach().clone()
    distributed.broadcast(result, src, _group(group))
    return result


def all_reduce(self, reduceOp, group, tag=""):
    """The reduction of all ranks' tensors; `reduceOp` is "sum", "avg", "max", ..."""
    _tell("all_reduce", self)
    result = self.detach().clone(memory_format=torch.contiguous_format)
    if result.dtype == torch.bool:
        numbers = result.to(torch.uint8)
        distributed.all_reduce(numbers, _operation(reduceOp), _group(group))
        return numbers.bool()
    distributed.all_reduce(result, _operation(reduceOp), _group(group))
    return result


def all_gather_tensor(self, gather_dim, group, tag=""):
    """The tensors of all ranks, one after the other along a dimension."""
    group = _group(group)
    _tell("all_gather_into_tensor", self)
    source = self.detach().contiguous()
    size = group.size()
    stacked = source.new_empty((size * source.shape[0], *source.shape[1:]) if source.dim() else (size,))
    distributed.all_gather_into_tensor(stacked, source, group)
    if gather_dim == 0 or size == 1:
        return stacked
    return torch.cat(stacked.chunk(size), gather_dim)


def reduce_scatter_tensor(self, reduceOp, scatter_dim, group, tag=""):
    """This rank's part, along a dimension, of the reduction of all ranks' tensors."""
    group = _group(group)
    _tell("reduce_scatter_tensor", self)
    size = group.size()
    if self.shape[scatter_dim] % size:
        raise ValueError(
            f"reduce_scatter_tensor: dimension {scatter_dim} of {list(self.shape)} is not a multiple of "
            f"{size}"
        )
    source = self.detach()
    source = torch.cat(source.chunk(size, scatter_dim)) if scatter_dim else source.contiguous()
    result = source.new_empty((source.shape[0] // size, *source.shape[1:]))
    distributed.reduce_scatter_tensor(result, source, _operation(reduceOp), group)
    return result


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag=""):
    """Rows for each rank are sent, and what they sent is joined."""
    _tell("all_to_all_single", self)
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    source = self.detach().contiguous()
    result = source.new_empty((rows, *source.shape[1:]))
    distributed.all_to_all_single(result, source, output_split_sizes, input_split_sizes, group=_group(group))
    return result


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, received, sent, group):
        ctx.parts = received, sent, group
        return all_to_all_single(x, received, sent, group)

    @staticmethod
    def backward(ctx, grad):
        received, sent, group = ctx.parts
        return _AllToAll.apply(grad, sent, received, group), None, None, None


class _AllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim, group):
        ctx.parts = dim, group
        return all_gather_tensor(x, dim, group)

    @staticmethod
    def backward(ctx, grad):
        return _ReduceScatter.apply(grad, "sum", *ctx.parts), None, None


class _ReduceScatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, operation, dim, group):
        if operation not in ("sum", "avg"):
            raise RuntimeError(
                f"reduce_scatter_tensor_autograd: {operation} has no derivative; sum and avg do"
            )
        ctx.parts = operation, dim, group
        return reduce_scatter_tensor(x, operation, dim, group)

    @staticmethod
    def backward(ctx, grad):
        operation, dim, group = ctx.parts
        grad = grad / _group(group).size() if operation == "avg" else grad
        return _AllGather.apply(grad, dim, group), None, None, None


def all_to_all_single_autograd(self, output_split_sizes, input_split_sizes, group, tag=""):
    """Send a part of the rows to each process and join what they sent; gradients travel back."""
    return _AllToAll.apply(self, output_split_sizes, input_split_sizes, group)


def all_gather_tensor_autograd(self, gather_dim, group, tag=""):
    """`all_gather_tensor`; gradients are reduced and scattered."""
    return _AllGather.apply(self, gather_dim, group)


def reduce_scatter_tensor_autograd(self, reduceOp, scatter_dim, group, tag=""):
    """`reduce_scatter_tensor`; gradients are gathered."""
    return _ReduceScatter.apply(self, reduceOp, scatter_dim, group)
