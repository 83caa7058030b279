"""Reading a state dict on all ranks at once."""

from ... import Tensor, no_grad
from ._chunks import chunk_of, copy_overlap, is_tensor, overlap
from ._flatten import flatten, name_of, put, with_states
from .filesystem import CheckpointException, FileSystemReader
from .metadata import MetadataIndex, TensorStorageMetadata
from .planner import DefaultLoadPlanner

__all__ = ["load"]


def load(
    state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False
):
    """Fill `state_dict` from the folder `checkpoint_id`, in place; any number of ranks may read.

    Tensors are written to (of DTensors each rank reads what its part needs, however it was cut when it was
    saved), other values replaced, objects with `load_state_dict()` are given theirs. Only what `state_dict`
    names is read.

    Raises CheckpointException for a place without a complete checkpoint; RuntimeError for keys that the
    checkpoint lacks (unless the planner allows it); ValueError for shapes that differ.
    """
    if storage_reader is None:
        if checkpoint_id is None:
            raise CheckpointException("load: give checkpoint_id, the folder to read from, or storage_reader")
        storage_reader = FileSystemReader(checkpoint_id)
    planner = planner or DefaultLoadPlanner()
    index = storage_reader.read_metadata()
    if hasattr(planner, "fill"):
        planner.fill(state_dict, index)
    wanted = with_states(state_dict)
    leaves = flatten(wanted)
    known = index.state_dict_metadata
    missing = [name_of(path) for path in leaves if name_of(path) not in known]
    if missing and not planner.allow_partial_load:
        raise RuntimeError(f"Missing key in checkpoint state_dict: {', '.join(missing)}.")
    for path, present in leaves.items():
        name = name_of(path)
        if name in known:
            _fill(wanted, path, present, name, index, storage_reader)
    for key, value in state_dict.items():
        if hasattr(value, "load_state_dict"):
            value.load_state_dict(wanted[key])
        else:
            state_dict[key] = wanted[key]


def _fill(wanted, path, present, name, index, reader):
    saved = index.state_dict_metadata[name]
    if not isinstance(saved, TensorStorageMetadata):
        put(wanted, path, reader.read(_where(index, MetadataIndex(name))))
        return
    if not is_tensor(present):
        put(wanted, path, _whole(name, saved, index, reader))
        return
    if present.shape != saved.size:
        raise ValueError(
            f"Size mismatch between saved {list(saved.size)} and current: {list(present.shape)} for {name}"
        )
    chunk, local = chunk_of(present)
    if chunk is not None:
        with no_grad():
            _read_into(local, chunk, name, saved, index, reader)


def _where(index, key):
    if key not in index.storage_data:
        raise CheckpointException(f"the index of the checkpoint does not say where {key.fqn} lies")
    return index.storage_data[key]


def _read_into(local, chunk, name, saved, index, reader):
    filled = 0
    for piece in saved.chunks:
        shared = overlap(piece, chunk)
        if shared is None and chunk.sizes.numel():
            continue
        value = reader.read(_where(index, MetadataIndex(name, piece.offsets)))
        if not isinstance(value, Tensor) or value.shape != piece.sizes:
            raise CheckpointException(f"{name}: a chunk is not of the shape {list(piece.sizes)} of the index")
        copy_overlap(local, chunk, value, piece)
        count = 1
        for *_, length in shared or ():
            count *= length
        filled += count if shared is not None else 0
    if filled < chunk.sizes.numel():
        raise CheckpointException(f"{name}: the checkpoint holds {filled} of {chunk.sizes.numel()} elements")


def _whole(name, saved, index, reader):
    from ... import empty, zeros_like
    from .metadata import ChunkStorageMetadata

    made = zeros_like(empty(tuple(saved.size), dtype=saved.properties.dtype))
    _read_into(made, ChunkStorageMetadata(made.shape[:0] + (0,) * made.dim(), saved.size), name, saved, index,
               reader)  # fmt: skip
    return made


def _load_state_dict(
    state_dict, storage_reader, planner=None, process_group=None, coordinator_rank=0, no_dist=False
):
    load(
        state_dict,
        storage_reader=storage_reader,
        planner=planner,
        process_group=process_group,
        no_dist=no_dist,
    )


def load_state_dict(
    state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None
):
    """The former name of `load`."""
    load(
        state_dict,
        storage_reader=storage_reader,
        planner=planner,
        process_group=process_group,
        no_dist=no_dist,
    )
