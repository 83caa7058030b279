"""Writing a state dict from all ranks at once."""

from ... import Tensor
from .._collectives import barrier
from .._initialize import get_rank, is_initialized
from .._messages import all_gather_object
from ._flatten import flatten, name_of, with_states
from .filesystem import CheckpointException, FileSystemWriter


def save(
    state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None, no_dist=False
):
    """Write `state_dict` to the folder `checkpoint_id`; every rank makes this call.

    What several ranks hold under one key is written once; the work is shared out by size. Objects with a
    `state_dict()` are written as that. The checkpoint counts from the moment its index is there, so that a
    job that dies while writing leaves no half checkpoint.

    Raises CheckpointException for a place that is not given, or that must not be overwritten.
    """
    if storage_writer is None:
        if checkpoint_id is None:
            raise CheckpointException("save: give checkpoint_id, the folder to write to, or storage_writer")
        storage_writer = FileSystemWriter(checkpoint_id)
    alone = no_dist or not is_initialized()
    rank = 0 if alone else get_rank(process_group)
    if rank == 0:
        storage_writer.prepare()
    values = {name_of(path): value for path, value in flatten(with_states(state_dict)).items()}
    writers = _shared_out(values, alone, process_group)
    mine = {key: _whole(value) for key, value in values.items() if writers[key] == rank}
    storage_writer.write(_file_of(rank), mine)
    if not alone:
        barrier(process_group)
    index = {"version": 1, "files": {key: _file_of(writer) for key, writer in writers.items()}}
    if rank == 0:
        storage_writer.finish(index)
    if not alone:
        barrier(process_group)
    return index


def _file_of(rank):
    return f"__{rank}_0.distcp"


def _whole(value):
    return value.detach().clone() if isinstance(value, Tensor) else value


def _bytes(value):
    return value.numel() * value.element_size() if isinstance(value, Tensor) else 64


def _shared_out(values, alone, group):
    """{key: rank that writes it}: large ones first, each to the least busy rank that has it."""
    sizes = {key: _bytes(value) for key, value in values.items()}
    if alone:
        return dict.fromkeys(sizes, 0)
    from .._initialize import get_world_size

    everyone = [None] * get_world_size(group)
    all_gather_object(everyone, sizes, group)
    load, writers = [0] * len(everyone), {}
    keys = {key: size for theirs in reversed(everyone) for key, size in theirs.items()}
    for key in sorted(keys, key=lambda k: (-keys[k], k)):
        writers[key] = min((r for r, theirs in enumerate(everyone) if key in theirs), key=load.__getitem__)
        load[writers[key]] += keys[key]
    return writers
