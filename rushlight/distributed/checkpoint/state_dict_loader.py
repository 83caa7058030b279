"""Reading a state dict on all ranks at once."""

from ... import Tensor, no_grad
from ._flatten import flatten, name_of, put, with_states
from .filesystem import CheckpointException, FileSystemReader
from .planner import DefaultLoadPlanner


def load(
    state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False
):
    """Fill `state_dict` from the folder `checkpoint_id`, in place; any number of ranks may read.

    Tensors are written to, other values replaced, objects with `load_state_dict()` are given theirs. Only
    what `state_dict` names is read.

    Raises CheckpointException for a place without a complete checkpoint; RuntimeError for keys that the
    checkpoint lacks (unless the planner allows it); ValueError for shapes that differ.
    """
    if storage_reader is None:
        if checkpoint_id is None:
            raise CheckpointException("load: give checkpoint_id, the folder to read from, or storage_reader")
        storage_reader = FileSystemReader(checkpoint_id)
    partial = (planner or DefaultLoadPlanner()).allow_partial_load
    files = storage_reader.read_metadata()["files"]
    wanted = with_states(state_dict)
    leaves = flatten(wanted)
    missing = [name_of(path) for path in leaves if name_of(path) not in files]
    if missing and not partial:
        raise RuntimeError(f"Missing key in checkpoint state_dict: {', '.join(missing)}.")
    for path, present in leaves.items():
        name = name_of(path)
        if name in files:
            _fill(wanted, path, present, storage_reader.read(files[name])[name])
    for key, value in state_dict.items():
        if hasattr(value, "load_state_dict"):
            value.load_state_dict(wanted[key])
        else:
            state_dict[key] = wanted[key]


def _fill(wanted, path, present, saved):
    if not isinstance(present, Tensor) or not isinstance(saved, Tensor):
        put(wanted, path, saved.clone() if isinstance(saved, Tensor) else saved)
        return
    if present.shape != saved.shape:
        raise ValueError(
            f"Size mismatch between saved {list(saved.shape)} and current: {list(present.shape)} for "
            f"{name_of(path)}"
        )
    with no_grad():
        present.copy_(saved)
