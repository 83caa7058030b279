"""Writing a state dict from all ranks at once."""

import threading
from enum import Enum

from ... import Size
from .._collectives import barrier
from .._initialize import get_rank, get_world_size, is_initialized, new_group
from .._messages import all_gather_object
from ._chunks import chunk_of, is_tensor
from ._flatten import flatten, name_of, with_states
from .filesystem import CheckpointException, FileSystemWriter
from .metadata import (
    BytesStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

__all__ = ["AsyncCheckpointerType", "async_save", "save"]


class AsyncCheckpointerType(Enum):
    """What writes while the program goes on; here always a thread."""

    THREAD = "thread"
    PROCESS = "process"


def save(
    state_dict,
    *,
    checkpoint_id=None,
    storage_writer=None,
    planner=None,
    process_group=None,
    no_dist=False,
    use_collectives=True,
):
    """Write `state_dict` to the folder `checkpoint_id`; every rank makes this call.

    Of a DTensor each rank has its part written; what several ranks hold is written once, the work shared out
    by size. Objects with a `state_dict()` are written as that. The checkpoint counts from the moment its
    index
    is there, so that a job that dies while writing leaves no half checkpoint. Returns the index.

    Raises CheckpointException for a place that is not given, or that must not be overwritten.
    """
    if storage_writer is None:
        if checkpoint_id is None:
            raise CheckpointException("save: give checkpoint_id, the folder to write to, or storage_writer")
        storage_writer = FileSystemWriter(checkpoint_id)
    leaves = flatten(with_states(state_dict))
    return _write({name_of(path): (path, value) for path, value in leaves.items()}, storage_writer,
                  process_group, no_dist or not is_initialized())  # fmt: skip


def _write(values, writer, group, alone):
    rank = 0 if alone else get_rank(group)
    if rank == 0:
        writer.prepare()
    pieces = {}
    for name, (_, value) in values.items():
        if not is_tensor(value):
            pieces[MetadataIndex(name)] = value
            continue
        chunk, local = chunk_of(value)
        if chunk is not None:
            pieces[MetadataIndex(name, chunk.offsets)] = local
    described = {name: (path, _described(value)) for name, (path, value) in values.items()}
    everyone = _gathered(({index: _bytes(v) for index, v in pieces.items()}, described), group, alone)
    writers = _shared_out([sizes for sizes, _ in everyone])
    mine = [(index, _own(value)) for index, value in pieces.items() if writers[index] == rank]
    written = _gathered(writer.write(rank, mine), group, alone)
    index = _index_of([said for _, said in everyone], written)
    if rank == 0:
        writer.finish(index)
    if not alone:
        barrier(group)
    return index


def _gathered(value, group, alone):
    if alone:
        return [value]
    everyone = [None] * get_world_size(group)
    all_gather_object(everyone, value, group)
    return everyone


def _described(value):
    if not is_tensor(value):
        return BytesStorageMetadata()
    chunk, local = chunk_of(value)
    properties = TensorProperties(dtype=local.dtype, requires_grad=value.requires_grad)
    return TensorStorageMetadata(properties, Size(value.shape), [] if chunk is None else [chunk])


def _index_of(everyone, written):
    """The whole index, from what each rank has and has written."""
    index = Metadata({}, planner_data={}, storage_data={})
    for said in everyone:
        for name, (path, described) in said.items():
            index.planner_data[name] = path
            known = index.state_dict_metadata.setdefault(name, described)
            if known is described or not isinstance(known, TensorStorageMetadata):
                continue
            if known.size != described.size:
                raise CheckpointException(
                    f"save: the ranks hold tensors of different sizes for {name}: {list(known.size)}, "
                    f"{list(described.size)}"
                )
            held = {tuple(chunk.offsets) for chunk in known.chunks}
            known.chunks += [chunk for chunk in described.chunks if tuple(chunk.offsets) not in held]
    for found in written:
        index.storage_data.update(found)
    return index


def _own(value):
    """A value to write: a tensor with memory of its own size."""
    if not is_tensor(value):
        return value
    return value.detach().clone() if value.untyped_storage().nbytes() != _bytes(value) else value.detach()


def _bytes(value):
    return value.numel() * value.element_size() if is_tensor(value) else 64


def _shared_out(everyone):
    """{index: rank that writes it}: large ones first, each to the least busy rank that has it."""
    load, writers = [0] * len(everyone), {}
    keys = {key: size for theirs in reversed(everyone) for key, size in theirs.items()}
    for key in sorted(keys, key=lambda k: (-keys[k], k.fqn, tuple(k.offset or ()))):
        writers[key] = min((r for r, theirs in enumerate(everyone) if key in theirs), key=load.__getitem__)
        load[writers[key]] += keys[key]
    return writers


def save_state_dict(
    state_dict, storage_writer, process_group=None, coordinator_rank=0, no_dist=False, planner=None
):
    """The former name of `save`."""
    return save(state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist)


_own_groups: dict = {}  # group -> the one whose collectives run beside the program's


def async_save(
    state_dict,
    *,
    checkpoint_id=None,
    storage_writer=None,
    planner=None,
    process_group=None,
    async_checkpointer_type=AsyncCheckpointerType.THREAD,
    async_stager=None,
    no_dist=False,
    use_collectives=True,
):
    """`save` beside the program: returns a Future of the index as soon as the values are copied.

    One save runs after the other is done: wait for `future.result()` before the next.
    """
    from concurrent.futures import Future

    if storage_writer is None:
        if checkpoint_id is None:
            raise CheckpointException("async_save: give checkpoint_id, the folder, or storage_writer")
        storage_writer = FileSystemWriter(checkpoint_id)
    alone = no_dist or not is_initialized()
    group = None if alone else _group_beside(process_group)
    leaves = flatten(with_states(state_dict))
    values = {name_of(path): (path, _copied(value)) for path, value in leaves.items()}
    future: Future = Future()

    def run():
        try:
            future.set_result(_write(values, storage_writer, group, alone))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="checkpoint", daemon=False).start()
    return future


def _copied(value):
    from copy import deepcopy

    return value.detach().clone() if is_tensor(value) else deepcopy(value)


def _group_beside(group):
    """A group of the same ranks with collectives of its own."""
    from .._process_group import _group_or_default

    group = _group_or_default(group)
    if group not in _own_groups:
        _own_groups.clear()
        _own_groups[group] = new_group(group._ranks)
    return _own_groups[group]
