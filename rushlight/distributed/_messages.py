"""Messages between two processes, and collectives of Python objects."""

from __future__ import annotations

import ctypes
import pickle
from typing import TYPE_CHECKING, Any

from rushlight._command.names import show_public_from

from .. import Tensor, cat, empty, frombuffer, int64, uint8, zeros
from .. import tensor as make_tensor
from .._operators.overridable import overridable
from ._by_device import coalescing_manager
from ._collectives import _check_tensor, _root, all_gather, broadcast, gather, scatter
from ._initialize import get_global_rank, get_group_rank
from ._process_group import _group_or_default, _rank_not_in_group, _warn_not_in_group

if TYPE_CHECKING:
    from ._process_group import ProcessGroup
    from ._work import Work


def _peer(group, rank, group_rank, what):
    peer = _root(group, rank, group_rank, what)
    if not 0 <= peer < group.size():
        raise RuntimeError(f"Invalid {what} rank: {peer} is no rank of a group of {group.size()}")
    if peer == group.rank():
        name = "destination" if what == "dst" else "source"
        raise ValueError(
            f"Invalid {name} rank: {name} rank should not be the same as the rank of the current process."
        )
    return peer


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Start sending to rank `dst`; the tensor must not be changed before the returned Work is done."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("isend")
    group = _group_or_default(group)
    return group.engine.send(tensor, _peer(group, dst, group_dst, "dst"), tag)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Start receiving from rank `src`, or from any; the tensor is filled when the Work is done."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("irecv")
    group = _group_or_default(group)
    anyone = src is None and group_src is None
    return group.engine.receive(tensor, -1 if anyone else _peer(group, src, group_src, "src"), tag)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to rank `dst`."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor from rank `src`, or from any; returns its global rank, -1 outside the group."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return get_global_rank(group, work.source_rank())  # type: ignore[attr-defined]


class P2POp:
    """One message of `batch_isend_irecv`: `op` is `isend` or `irecv`."""

    def __init__(
        self,
        op: Any,
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        _check_tensor(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.group_peer = _root(_group_or_default(group), peer, group_peer, "dst" if op is isend else "src")
        self.peer = get_global_rank(group, self.group_peer)

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__} peer={self.peer}, shape={list(self.tensor.shape)}, tag={self.tag})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Any]:
    """Start all messages of a list of P2POp; returns their Works.

    Raises RuntimeError for other things in the list, and for messages of different groups."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``."
        )
    groups = {id(_group_or_default(op.group)) for op in p2p_op_list}
    if len(groups) > 1:
        raise ValueError("All ops need to use the same group.")
    options = {isend: "group_dst", irecv: "group_src"}

    def started(op):
        return op.op(op.tensor, group=op.group, tag=op.tag, **{options[op.op]: op.group_peer})

    if p2p_op_list and p2p_op_list[0].tensor.is_cuda:  # one launch, in which no order can block
        with coalescing_manager(p2p_op_list[0].group, "cuda", async_ops=True) as manager:
            for op in p2p_op_list:
                manager.append(started(op))
        return manager.works
    return [started(op) for op in p2p_op_list]


# --- objects: pickled, so only for processes that trust each other


def _object_to_tensor(value, device="cpu"):
    data = bytearray(pickle.dumps(value))
    return frombuffer(data, dtype=uint8).to(device), make_tensor([len(data)], device=device)


def _wire(group):
    """Where the bytes of objects are when they travel in a group."""
    return _group_or_default(group).wire_device()


def _tensor_to_object(data: Tensor, size):
    data = data.cpu().contiguous()
    return pickle.loads(ctypes.string_at(data.data_ptr(), int(size)))


def _gathered_sizes(size, group):
    sizes = [size.clone() for _ in range(_group_or_default(group).size())]
    all_gather(sizes, size, group)
    return [int(s) for s in sizes]


def _padded(data, size):
    padded = data.new_zeros(size)
    padded[: data.numel()] = data
    return padded


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Collect an object of every process, by rank, in `object_list`."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_object")
    data, size = _object_to_tensor(obj, _wire(group))
    sizes = _gathered_sizes(size, group)
    parts = [data.new_empty(max(sizes)) for _ in sizes]
    all_gather(parts, _padded(data, max(sizes)), group)
    for index, (part, length) in enumerate(zip(parts, sizes)):
        object_list[index] = _tensor_to_object(part, length)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Collect an object of every process in `object_gather_list` of rank `dst` (default 0)."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather_object")
    group = _group_or_default(group)
    root = _root(group, dst, group_dst, "dst") if (dst, group_dst) != (None, None) else 0
    mine = group.rank() == root
    if mine and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not mine and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    data, size = _object_to_tensor(obj, _wire(group))
    sizes = _gathered_sizes(size, group)
    parts = [data.new_empty(max(sizes)) for _ in sizes] if mine else None
    gather(_padded(data, max(sizes)), parts, group=group, group_dst=root)
    for index, part in enumerate(parts or []):
        assert object_gather_list is not None
        object_gather_list[index] = _tensor_to_object(part, sizes[index])


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Copy the objects of rank `src`'s list into the others' lists, which have the same length."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast_object_list")
    group = _group_or_default(group)
    root = _root(group, src, group_src, "src") if (src, group_src) != (None, None) else 0
    sizes = zeros(len(object_list), dtype=int64, device=_wire(group))
    data = None
    if group.rank() == root:
        parts = [_object_to_tensor(value, _wire(group))[0] for value in object_list]
        sizes, data = make_tensor([part.numel() for part in parts], device=_wire(group)), cat(parts)
    broadcast(sizes, group=group, group_src=root)
    if data is None:
        data = zeros(int(sizes.sum()), dtype=uint8, device=_wire(group))
    broadcast(data, group=group, group_src=root)
    if group.rank() != root:
        for index, part in enumerate(data.split(sizes.tolist())):
            object_list[index] = _tensor_to_object(part, part.numel())


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Give every process the object of its rank in rank `src`'s input list, as first of its output list."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    group = _group_or_default(group)
    root = _root(group, src, group_src, "src") if (src, group_src) != (None, None) else 0
    sizes: list[Tensor] | None = None
    parts: list[Tensor] | None = None
    longest = make_tensor([0], device=_wire(group))
    if group.rank() == root:
        if not scatter_object_input_list:
            raise ValueError(
                "Argument scatter_object_input_list must hold an object for each rank on the source."
            )
        pairs = [_object_to_tensor(value, _wire(group)) for value in scatter_object_input_list]
        sizes = [size for _, size in pairs]
        longest = make_tensor([max(int(size) for size in sizes)], device=_wire(group))
        parts = [_padded(part, int(longest)) for part, _ in pairs]
    broadcast(longest, group=group, group_src=root)
    size = make_tensor([0], device=_wire(group))
    data = empty(int(longest), dtype=uint8, device=_wire(group))
    scatter(size, sizes, group=group, group_src=root)
    scatter(data, parts, group=group, group_src=root)
    scatter_object_output_list[0] = _tensor_to_object(data, size)


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send a list of objects to rank `dst`."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("send_object_list")
    parts = [_object_to_tensor(value, _wire(group))[0] for value in object_list]
    send(make_tensor([part.numel() for part in parts], device=_wire(group)), dst, group, group_dst=group_dst)
    send(cat(parts), dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive a list of as many objects into `object_list`; returns the sender's global rank."""
    if _rank_not_in_group(group):
        _warn_not_in_group("recv_object_list")
        return -1
    sizes = empty(len(object_list), dtype=int64, device=_wire(group))
    sender = recv(sizes, src, group, group_src=group_src)
    data = empty(int(sizes.sum()), dtype=uint8, device=_wire(group))
    recv(data, group=group, group_src=get_group_rank(group, sender))
    for index, part in enumerate(data.split(sizes.tolist())):
        object_list[index] = _tensor_to_object(part, part.numel())
    return sender


for _name in ("isend", "irecv", "send", "recv"):
    globals()[_name] = overridable(globals()[_name])


show_public_from("distributed.distributed_c10d", globals())
