"""Reading a state dict on all ranks at once."""

from __future__ import annotations

from ._flatten import with_states
from ._steps import Steps
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import CheckpointException, FileSystemReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

    from rushlight.distributed._process_group import ProcessGroup

__all__ = ["load"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | PathLike[str] | None = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Fill `state_dict` from the folder `checkpoint_id`, in place; any number of ranks may read.

    Tensors are written to (of DTensors each rank reads what its part needs, however it was cut when it was
    saved), other values replaced, objects with `load_state_dict()` are given theirs. Only what `state_dict`
    names is read.

    Raises CheckpointException, whose `failures` are the errors by rank: for a place without a complete
    checkpoint; for keys that the checkpoint lacks (unless the planner allows it), where it is a RuntimeError
    too; for shapes that differ, where it is a ValueError.
    """
    if storage_reader is None:
        if checkpoint_id is None:
            raise CheckpointException("load: give checkpoint_id, the folder to read from, or storage_reader")
        storage_reader = FileSystemReader(checkpoint_id)
    planner, steps = planner or DefaultLoadPlanner(), Steps(process_group, no_dist)
    storage_reader.reset(checkpoint_id)
    metadata = steps.here(storage_reader.read_metadata)
    empty, wanted = not state_dict, with_states(state_dict)

    def local():
        planner.set_up_planner(wanted, metadata, steps.first)
        storage_reader.set_up_storage_reader(metadata, steps.first)
        return storage_reader.prepare_local_plan(planner.create_local_plan())

    def whole(plans):
        return storage_reader.prepare_global_plan(planner.create_global_plan(plans))

    plan = steps.plan(local, whole) if _plans_together(planner, storage_reader) else steps.here(local)
    steps.here(lambda: storage_reader.read_data(planner.finish_plan(plan), planner).wait())
    if empty:
        state_dict.update(wanted)
    for key, value in state_dict.items():
        if hasattr(value, "load_state_dict"):
            value.load_state_dict(wanted[key])
        else:
            state_dict[key] = wanted[key]


def _plans_together(planner, reader):
    """Whether the plans of all ranks are to be seen by the first one: ours need not, and save the round."""
    alone = type(planner).create_global_plan is DefaultLoadPlanner.create_global_plan
    return not (alone and type(reader).prepare_global_plan is FileSystemReader.prepare_global_plan)


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
    state_dict: dict[str, Any],
    storage_reader: Any,
    process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> None:
    """The former name of `load`."""
    load(
        state_dict,
        storage_reader=storage_reader,
        planner=planner,
        process_group=process_group,
        no_dist=no_dist,
    )


def _load_state_dict_from_keys(
    keys: set[str] | str | None = None,
    *,
    checkpoint_id: str | PathLike[str] | None = None,
    storage_reader: Any = None,
    process_group: ProcessGroup | None = None,
) -> dict[str, Any]:
    """A new state dict of what the checkpoint has under these names, or of all; every rank reads it whole.

    A name also stands for all below it: ``"model"`` for ``"model.weight"``.
    """
    from rushlight.distributed import is_available, is_initialized

    state_dict: dict[str, Any] = {}
    load(
        state_dict,
        checkpoint_id=checkpoint_id,
        storage_reader=storage_reader,
        planner=_EmptyStateDictLoadPlanner({keys} if isinstance(keys, str) else keys),
        process_group=process_group,
        no_dist=not (is_available() and is_initialized()),
    )
    return state_dict
