"""Attention over sequences that are shared among processes: each holds some of the positions.

Ring attention (Liu et al., "Ring Attention with Blockwise Transformers for Near-Infinite Context", 2023):
queries stay, keys and values of the others come by, and partial results are joined by their log-sum-exp.
Under a causal mask the second half of a sequence sees more than the first, so a process takes one part of
each (as Brandon et al., "Striped Attention", 2023, do position by position).
"""

import contextlib
from dataclasses import dataclass

import rushlight as torch
from rushlight import distributed as dist
from rushlight.autograd import Function
from rushlight.distributed import _functional_collectives as collectives
from rushlight.nn import functional as F
from rushlight.overrides import TorchFunctionMode

__all__ = ["context_parallel", "context_parallel_unshard", "set_rotate_method"]

_METHODS = ("allgather", "alltoall")


@dataclass
class _Options:
    """How sequences are shared out."""

    enable_load_balance: bool = True
    rotate_method: str = "allgather"


_cp_options = _Options()


def set_rotate_method(rotate_method: str) -> None:
    """How keys and values come to the other processes: "allgather" (the default) brings all of them at once,
    "alltoall" one process's at a time, to the next in the ring, which needs less memory.

    Raises NotImplementedError for other names.
    """
    if rotate_method not in _METHODS:
        raise NotImplementedError(f"set_rotate_method: {rotate_method!r} is none of {', '.join(_METHODS)}")
    _cp_options.rotate_method = rotate_method


# --- who holds what


def _order(length, size, device):
    """The positions in the order in which the processes hold them; None for the order as it is."""
    if not _cp_options.enable_load_balance:
        return None
    if length % (2 * size):
        raise ValueError(
            f"context_parallel: {length} positions cannot be shared evenly by {size} processes, pad them to "
            f"a multiple of {2 * size}"
        )
    parts = torch.arange(length, device=device).reshape(2 * size, -1)
    return torch.stack([parts[:size], parts[size:].flip(0)], 1).reshape(-1)


def _share(buffer, dim, rank, size):
    """What a process holds of a buffer."""
    order = _order(buffer.shape[dim], size, buffer.device)
    if order is None:
        if buffer.shape[dim] % size:
            raise ValueError(
                f"context_parallel: {buffer.shape[dim]} positions cannot be shared evenly by {size} processes"
            )
        return buffer.chunk(size, dim)[rank].clone()
    return buffer.index_select(dim, order.chunk(size)[rank])


def _seen(rank, source, causal, length):
    """Which rows of the queries of `rank` see which rows of the keys of `source`; None: none do."""
    everything, first, second = slice(0, length), slice(0, length // 2), slice(length // 2, length)
    if not causal or source == rank:
        return everything, slice(None)
    if not _cp_options.enable_load_balance:
        return (everything, slice(None)) if source < rank else None
    return (everything, first) if source < rank else (second, slice(None))


# --- the attention of a process


def _rounds(group, *parts):
    """(process, its parts), from this one's own on; parts of all processes have one shape."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    yield rank, parts
    if _cp_options.rotate_method == "allgather":
        gathered = [collectives.all_gather_tensor(part.unsqueeze(0), 0, group) for part in parts]
        for source in ((rank - step) % size for step in range(1, size)):
            yield source, [part[source] for part in gathered]
        return
    after, before = (dist.get_global_rank(group, (rank + step) % size) for step in (1, -1))
    for step in range(1, size):
        received = [torch.empty_like(part) for part in parts]
        sends = [dist.P2POp(dist.isend, part, after, group) for part in parts]
        receives = [dist.P2POp(dist.irecv, part, before, group) for part in received]
        for work in dist.batch_isend_irecv(sends + receives):
            work.wait()
        parts = tuple(received)
        yield (rank - step) % size, parts


def _join(total, logsumexp, rows, part, weight):
    """A partial result, and the log-sum-exp of its scores, join those of the same rows."""
    before = logsumexp[:, :, rows]
    after = torch.logaddexp(before, weight)
    shrunk = total[:, :, rows] * (before - after).exp().unsqueeze(-1)
    total[:, :, rows] = shrunk + part * (weight - after).exp().unsqueeze(-1)
    logsumexp[:, :, rows] = after


class _RingAttention(Function):
    """Attention of this process's queries to the keys of all."""

    @staticmethod
    def forward(ctx, query, key, value, group, causal, scale):
        attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        rank, length = dist.get_rank(group), query.shape[2]
        key, value = key.contiguous(), value.contiguous()
        sums = torch.promote_types(query.dtype, torch.float32)
        total = query.new_zeros((*query.shape[:3], value.shape[3]), dtype=sums)
        logsumexp = query.new_full(query.shape[:3], float("-inf"), dtype=sums)
        for source, (keys, values) in _rounds(group, key, value):
            seen = _seen(rank, source, causal, length)
            if seen is None:
                continue
            rows, columns = seen
            operands = (query[:, :, rows], keys[:, :, columns], values[:, :, columns])
            _join(total, logsumexp, rows, *attend(*operands, 0.0, causal and source == rank, scale=scale))
        out = total.to(query.dtype)
        ctx.save_for_backward(query, key, value, out, logsumexp)
        ctx.group, ctx.causal, ctx.scale = group, causal, scale
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
        query, key, value, out, logsumexp = ctx.saved_tensors
        rank, size = dist.get_rank(ctx.group), dist.get_world_size(ctx.group)
        for_query = torch.zeros_like(query)
        for_keys, for_values = key.new_zeros((size, *key.shape)), value.new_zeros((size, *value.shape))
        for source, (keys, values) in _rounds(ctx.group, key, value):
            seen = _seen(rank, source, ctx.causal, query.shape[2])
            if seen is None:
                continue
            rows, columns = seen
            g, q, o, lse = (tensor[:, :, rows] for tensor in (grad, query, out, logsumexp))
            k, v = keys[:, :, columns], values[:, :, columns]
            own = ctx.causal and source == rank
            parts = backward(g, q, k, v, o, lse, 0.0, own, scale=ctx.scale)
            for_query[:, :, rows] += parts[0]
            for_keys[source][:, :, columns] += parts[1]
            for_values[source][:, :, columns] += parts[2]
        sums = [
            collectives.reduce_scatter_tensor(part, "sum", 0, ctx.group).squeeze(0)
            for part in (for_keys, for_values)
        ]
        return for_query, *sums, None, None, None


def _attention(
    group, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """`scaled_dot_product_attention` of sequences that the processes of a group share."""
    if attn_mask is not None or dropout_p:
        what = "attn_mask" if attn_mask is not None else "dropout"
        raise NotImplementedError(f"context_parallel: attention with {what} is not computed in parts")
    if query.dim() != 4 or (is_causal and query.shape[2] != key.shape[2]):
        raise ValueError(
            "context_parallel: attention takes [batch, heads, positions, width], with as many queries as "
            f"keys under a causal mask, but got {list(query.shape)} and {list(key.shape)}"
        )
    if enable_gqa:
        key, value = (part.repeat_interleave(query.shape[1] // part.shape[1], 1) for part in (key, value))
    if torch.is_autocast_enabled(query.device.type):
        dtype = torch.get_autocast_dtype(query.device.type)
        query, key, value = (part.to(dtype) for part in (query, key, value))
    return _RingAttention.apply(query, key, value, group, is_causal, scale)


class _Attends(TorchFunctionMode):
    """Inside, attention goes over the processes of a group."""

    def __init__(self, group):
        super().__init__()
        self._group = group

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is F.scaled_dot_product_attention:
            return _attention(self._group, *args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


# --- for programs


@contextlib.contextmanager
def context_parallel(mesh, *, buffers=None, buffer_seq_dims=None, no_restore_buffers=None):
    """Inside, a sequence is shared by the processes of a mesh: `scaled_dot_product_attention` of each one's
    positions attends to those of all, forward and backward. Other operators look at one position at a time,
    so they need nothing.

    Process r of n holds parts r and 2n-1-r of 2n equal ones. What depends on positions (inputs, labels,
    positional embeddings) must be among the buffers.

    Args:
        mesh: a DeviceMesh of one dimension.
        buffers: tensors that have all positions; inside, each is resized to those of this process.
        buffer_seq_dims: the dimension of the positions, for each buffer.
        no_restore_buffers: a set of those that are not given back their former values at the end.

    Raises ValueError where positions cannot be shared evenly, and NotImplementedError for attention with a
    mask other than `is_causal`, or with dropout.
    """
    buffers, dims, kept = list(buffers or ()), list(buffer_seq_dims or ()), no_restore_buffers or set()
    if len(buffers) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    if any(all(each is not buffer for buffer in buffers) for each in kept):
        raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    group = mesh.get_group()
    with torch.no_grad():
        rank, size = dist.get_rank(group), mesh.size()
        shares = [_share(buffer, dim, rank, size) for buffer, dim in zip(buffers, dims)]
        former = [None if any(each is buffer for each in kept) else buffer.clone() for buffer in buffers]
        for buffer, share in zip(buffers, shares):
            buffer.resize_(share.shape).copy_(share)
    try:
        with _Attends(group):
            yield
    finally:
        with torch.no_grad():
            for buffer, value in zip(buffers, former):
                if value is not None:
                    buffer.resize_(value.shape).copy_(value)


def context_parallel_unshard(mesh, buffers, seq_dims):
    """Tensors with all positions, in their order, from what each process of the mesh holds.

    Args:
        buffers: tensors, for example outputs, whose positions were shared by `context_parallel`.
        seq_dims: the dimension of the positions, for each.
    """
    found, size = [], mesh.size()
    with torch.no_grad():
        for buffer, dim in zip(buffers, seq_dims):
            whole = collectives.all_gather_tensor(buffer.contiguous(), dim, mesh.get_group())
            order = _order(whole.shape[dim], size, whole.device)
            found.append(whole if order is None else whole.index_select(dim, order.argsort()))
    return found
