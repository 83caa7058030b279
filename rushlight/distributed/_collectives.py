"""Collectives of tensors.

Every process of the group must make the same calls in the same order. They write to the tensors given, which
must have the same dtype and number of elements everywhere, and record nothing for autograd
(`torch.distributed.nn.functional` does). `async_op=True` returns a Work to wait for, None else.

Raises, all of them: TypeError for arguments that are not tensors; ValueError for dtypes that differ and for
roots that are missing; RuntimeError for shapes, lists and ranks that do not fit; DistBackendError,
naming the call, its number and its tensors, when another rank ended, or does not take
part within the group's timeout.
"""

from __future__ import annotations

import time
from datetime import timedelta
from operator import index
from typing import TYPE_CHECKING

from rushlight._command.names import show_public_from

from .. import Tensor, cat
from .._operators.overridable import overridable
from ._errors import DistError
from ._initialize import get_group_rank
from ._process_group import _group_or_default, _rank_not_in_group, _warn_not_in_group, _world
from ._reduce_op import RedOpType, ReduceOp, op_of
from .store import check_timeout

if TYPE_CHECKING:
    from typing import Any

    from ._process_group import ProcessGroup
    from ._work import Work


def _check_tensor(value, name):
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def _check_tensor_list(values, name):
    if not isinstance(values, (list, tuple)) or not all(isinstance(t, Tensor) for t in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} with elements of type "
            f"{[type(value) for value in values] if isinstance(values, (list, tuple)) else '-'}."
        )


def _check_same(tensors, like, what):
    _check_one_dtype(*tensors[:1], like, *tensors[1:])
    for place, tensor in enumerate(tensors):
        if tensor.numel() != like.numel():
            raise RuntimeError(
                f"ProcessGroupGloo::{what}: invalid tensor size at index {place} "
                f"(expected {_sizes(like)}, got {_sizes(tensor)})"
            )


def _sizes(tensor):
    return f"({', '.join(map(str, tensor.shape))})"


def _check_one_dtype(*tensors):
    for tensor in tensors[1:]:
        if tensor.dtype != tensors[0].dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypesFound {tensors[0].dtype} and  {tensor.dtype}"
            )


def _check_tensor_per_rank(tensors, ranks, what):
    if len(tensors) != ranks:
        raise RuntimeError(
            f"ProcessGroupGloo::alltoall: {what} tensor list size {len(tensors)} "
            f"does not match world size {ranks}"
        )


def supports_complex(reduceOp: Any) -> bool:
    """Whether a reduction is defined for complex numbers: sums and averages are."""
    return op_of(reduceOp) in (RedOpType.SUM, RedOpType.AVG)


def _check_complex(tensor, op, name):
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"{name} does not support {op} on complex tensors")


def _root(group, rank, group_rank, what):
    """The root's rank in the group, given as global or as group rank. The default group's may not exist."""
    if rank is None and group_rank is None:
        raise ValueError(f"Must specify global_rank or group_rank: {what} or group_{what}")
    if rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both group_rank and global_rank: {what} and group_{what}")
    if group_rank is not None:
        return index(group_rank)
    return index(rank) if group is _world.default_pg else get_group_rank(group, index(rank))


def _check_root(group, root, what):
    if not 0 <= root < group.size():
        raise RuntimeError(f"ProcessGroupGloo::{what}: invalid root rank: {root}")


def _check_list_of_root(group, root, tensors, like, what, role):
    """Raise unless the root, and no other, gives a list of a tensor for each rank."""
    if group.rank() == root:
        if not tensors:
            raise ValueError(f"Argument ``{what}_list`` must be specified on {role} rank.")
        _check_tensor_list(tensors, f"{what}_list")
        if len(tensors) != group.size():
            kind = "output" if what == "gather" else "input"
            raise RuntimeError(
                f"ProcessGroupGloo::{what}: Incorrect {kind} list size {len(tensors)}. "
                f"{kind.capitalize()} list size should be {group.size()}, same as size of the process group."
            )
        _check_same(tensors, like, what)
    elif tensors:
        raise ValueError(f"Argument ``{what}_list`` must NOT be specified on non-{role} ranks.")
    _check_root(group, root, what)


def _result(work, async_op):
    return work if async_op else None


def all_reduce(
    tensor: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Reduce the tensors of all processes; each gets the result in its own."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce")
    _check_complex(tensor, op, "all_reduce")
    return _result(_group_or_default(group).engine.all_reduce([tensor], op, async_op), async_op)


def all_reduce_coalesced(
    tensors: list[Tensor], op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """`all_reduce` of several tensors in one call."""
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_tensor_list(tensors, "tensors")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce_coalesced")
    for tensor in tensors:
        _check_complex(tensor, op, "all_reduce_coalesced")
    return _result(_group_or_default(group).engine.all_reduce(list(tensors), op, async_op), async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduce the tensors of all processes into the one of rank `dst`."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce")
    group = _group_or_default(group)
    _check_complex(tensor, op, "reduce")
    root = _root(group, dst, group_dst, "dst")
    _check_root(group, root, "reduce")
    return _result(group.engine.reduce(tensor, root, op, async_op), async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copy the tensor of rank `src` to all processes."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast")
    group = _group_or_default(group)
    root = _root(group, src, group_src, "src")
    _check_root(group, root, "broadcast")
    return _result(group.engine.broadcast(tensor, root, async_op), async_op)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Collect the tensors of all processes, by rank, in `tensor_list`."""
    _check_tensor_list(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather")
    group = _group_or_default(group)
    if len(tensor_list) != group.size():
        raise RuntimeError(
            "ProcessGroupGloo::allgather: invalid output tensor list at index 0 "
            f"(expected length {group.size()}, got {len(tensor_list)})"
        )
    _check_same(tensor_list, tensor, "allgather")
    return _result(group.engine.all_gather(list(tensor_list), tensor, async_op), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Collect the tensors of all processes in one, which has as many elements as all of them."""
    _check_tensor(input_tensor, "input_tensor")
    _check_tensor(output_tensor, "output_tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_into_tensor")
    group = _group_or_default(group)
    if (
        output_tensor.numel() != input_tensor.numel() * group.size()
        or output_tensor.dtype != input_tensor.dtype
    ):
        raise RuntimeError(
            "output tensor size must be equal to world_size times input tensor size: got "
            f"{output_tensor.dtype}{list(output_tensor.shape)} for {group.size()} times "
            f"{input_tensor.dtype}{list(input_tensor.shape)}"
        )
    return _result(group.engine.all_gather_into(output_tensor, input_tensor, async_op), async_op)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """`all_gather` of several tensors: `output_tensor_lists[rank][i]` is the rank's i-th tensor."""
    _check_tensor_list(input_tensor_list, "tensor_list")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_coalesced")
    engine, work = _group_or_default(group).engine, None
    for place, tensor in enumerate(input_tensor_list):
        outputs = [outputs_of_rank[place] for outputs_of_rank in output_tensor_lists]
        _check_same(outputs, tensor, "allgather_coalesced")
        work = engine.all_gather(outputs, tensor, async_op)
    return _result(work, async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Collect the tensors of all processes in `gather_list` of rank `dst` (default 0)."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather")
    group = _group_or_default(group)
    root = _root(group, dst, group_dst, "dst") if (dst, group_dst) != (None, None) else 0
    _check_list_of_root(group, root, gather_list, tensor, "gather", "destination")
    return _result(group.engine.gather(tensor, gather_list, root, async_op), async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give every process the tensor of its rank in `scatter_list` of rank `src` (default 0)."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter")
    group = _group_or_default(group)
    root = _root(group, src, group_src, "src") if (src, group_src) != (None, None) else 0
    _check_list_of_root(group, root, scatter_list, tensor, "scatter", "source")
    return _result(group.engine.scatter(tensor, scatter_list, root, async_op), async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce the lists of all processes tensor by tensor; each process gets the one of its rank."""
    _check_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter")
    if len(input_list) != _group_or_default(group).size():
        raise RuntimeError("invalid input tensor list size, must be world size")
    _check_same(input_list, output, "reduce_scatter")
    flat = cat([tensor.detach().reshape(-1) for tensor in input_list])
    return reduce_scatter_tensor(output, flat, op, group, async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce the tensors of all processes; each process gets its rank's part of the result."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter_tensor")
    group = _group_or_default(group)
    if input.numel() != output.numel() * group.size() or input.dtype != output.dtype:
        raise RuntimeError(
            "input tensor must be the same size as output size times world size: reduce_scatter_tensor got "
            f"{input.dtype}{list(input.shape)} for {group.size()} times {output.dtype}{list(output.shape)}"
        )
    _check_complex(output, op, "reduce_scatter")
    return _result(group.engine.reduce_scatter(output, input, op, async_op), async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Cut the input along its first dimension, send each rank its part, put theirs together in `output`.

    Both have one dtype; without sizes the parts are equal. Raises RuntimeError where they are not.
    """
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all_single")
    _check_one_dtype(output, input)
    group = _group_or_default(group)
    received = _split_sizes(output, output_split_sizes, group.size(), "output")
    sent = _split_sizes(input, input_split_sizes, group.size(), "input")
    return _result(group.engine.all_to_all(output, input, received, sent, async_op), async_op)


def _split_sizes(tensor, sizes, ranks, what):
    rows = tensor.shape[0] if tensor.dim() else 0
    if not sizes:
        if rows % ranks:
            raise RuntimeError(
                f"Tensor's dim 0 does not divide equally across group size: {what} has {rows} rows"
            )
        return [rows // ranks] * ranks
    if len(sizes) != ranks:
        raise RuntimeError(f"Number of tensor splits not equal to group size: {what} has {sizes}")
    if sum(sizes) != rows or min(sizes) < 0:
        raise RuntimeError(
            f"Split sizes doesn't match total dim 0 size: {what} of {rows} rows, split {sizes}"
        )
    return list(sizes)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send each rank its tensor of `input_tensor_list`, and get theirs in `output_tensor_list`.

    Both have a tensor for each rank (RuntimeError), of any shapes and one dtype (ValueError).
    """
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all")
    _check_one_dtype(*output_tensor_list, *input_tensor_list)
    group = _group_or_default(group)
    _check_tensor_per_rank(input_tensor_list, group.size(), "input")
    _check_tensor_per_rank(output_tensor_list, group.size(), "output")
    sent, received = [t.numel() for t in input_tensor_list], [t.numel() for t in output_tensor_list]
    source = cat([t.detach().reshape(-1) for t in input_tensor_list])
    target = source.new_empty(sum(received))

    def finish():
        for part, output in zip(target.split(received), output_tensor_list, strict=True):
            output.detach().copy_(part.view(output.shape))

    return _result(group.engine.all_to_all(target, source, received, sent, async_op, finish), async_op)


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait until every process of the group is here."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("barrier")
    return _result(_group_or_default(group).engine.barrier(async_op, timeout), async_op)


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """A barrier that says who did not come: rank 0 raises RuntimeError with the ranks that are missing after
    `timeout`, all of them with `wait_all_ranks`, else the first; the others raise because rank 0 did."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("monitored_barrier")
    group = _group_or_default(group)
    limit: timedelta = check_timeout(timeout or group._timeout)
    seconds, store = limit.total_seconds(), group._store
    number = getattr(group, "_monitored", 0) + 1
    group._monitored = number  # type: ignore[attr-defined]
    if group.rank() != 0:
        store.set(f"monitored/{number}/{group.rank()}", b"here")
        try:
            store.wait([f"monitored/{number}/all"], limit)
        except DistError as error:
            raise RuntimeError(
                f"Rank {group.rank()} successfully reached monitoredBarrier, but received errors while "
                f"waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank. ({error})"
            ) from None
        return
    deadline, missing = time.monotonic() + seconds, []
    for rank in range(1, group.size()):
        try:
            left = max(deadline - time.monotonic(), 0.001)
            store.wait([f"monitored/{number}/{rank}"], timedelta(seconds=left))
        except DistError:
            missing.append(rank)
            if not wait_all_ranks:
                break
    if missing:
        names = ", ".join(map(str, missing))
        raise RuntimeError(
            f"[Rank 0]: Ranks {names} failed to pass monitoredBarrier in {round(seconds * 1000)} ms"
            if wait_all_ranks
            else f"Rank 0: Rank {names} failed to pass monitoredBarrier in {round(seconds * 1000)} ms"
        )
    store.set(f"monitored/{number}/all", b"here")


# Tensor subclasses see collectives; what a module imports from here is the overridable function.
for _name in """broadcast all_reduce reduce all_reduce_coalesced all_gather all_gather_into_tensor
        all_gather_coalesced gather scatter reduce_scatter reduce_scatter_tensor all_to_all_single
        all_to_all""".split():
    globals()[_name] = overridable(globals()[_name], takes_lists=True)
_all_gather_base = all_gather_single = all_gather_into_tensor
_reduce_scatter_base = reduce_scatter_single = reduce_scatter_tensor


show_public_from("distributed.distributed_c10d", globals())
