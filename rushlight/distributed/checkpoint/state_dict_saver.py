"""Writing a state dict from all ranks at once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from copy import deepcopy
from enum import Enum

from .._initialize import is_initialized, new_group
from ._chunks import is_tensor
from ._flatten import with_states
from ._steps import Steps
from .default_planner import DefaultSavePlanner
from .filesystem import CheckpointException, FileSystemWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

    from rushlight.distributed._process_group import ProcessGroup

__all__ = ["AsyncCheckpointerType", "async_save", "save"]


class AsyncCheckpointerType(Enum):
    """What writes while the program goes on; here always a thread."""

    THREAD = "thread"
    PROCESS = "process"


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | PathLike[str] | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Any:
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
    state = with_states(state_dict)
    return _write(state, checkpoint_id, storage_writer, planner, process_group, no_dist)


def _write(state, checkpoint_id, writer, planner, group, no_dist):
    steps, planner = Steps(group, no_dist), planner or DefaultSavePlanner()
    writer.reset(checkpoint_id)
    metadata = None

    def local():
        planner.set_up_planner(state, writer.storage_meta(), steps.first)
        writer.set_up_storage_writer(steps.first)
        return writer.prepare_local_plan(planner.create_local_plan())

    def whole(plans):
        nonlocal metadata
        plans, metadata = planner.create_global_plan(plans)
        return writer.prepare_global_plan(plans)

    plan = steps.plan(local, whole)
    try:
        results = steps.gather(lambda: list(writer.write_data(planner.finish_plan(plan), planner).wait()))
        return steps.on_first(lambda: _finished(writer, metadata, results))
    except Exception:
        # Where only the others are lost, the index may be there, and count.
        if steps.failed and hasattr(writer, "abandon"):
            writer.abandon()
        raise


def _finished(writer, metadata, results):
    writer.finish(metadata, results)
    return metadata


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: Any,
    process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> Any:
    """The former name of `save`."""
    return save(
        state_dict,
        storage_writer=storage_writer,
        planner=planner,
        process_group=process_group,
        no_dist=no_dist,
    )


_own_groups: dict = {}  # group -> the one whose collectives run beside the program's


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | PathLike[str] | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: ProcessGroup | None = None,
    async_checkpointer_type: Any = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Any:
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
    state = _copied(with_states(state_dict))
    future: Future = Future()

    def run():
        try:
            future.set_result(_write(state, checkpoint_id, storage_writer, planner, group, alone))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="checkpoint", daemon=False).start()
    return future


def _copied(value):
    """The same state in memory of its own."""
    if is_tensor(value):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return {key: _copied(entry) for key, entry in value.items()}
    return [_copied(entry) for entry in value] if type(value) is list else deepcopy(value)


def _group_beside(group):
    """A group of the same ranks with collectives of its own."""
    from .._process_group import _group_or_default

    group = _group_or_default(group)
    if group not in _own_groups:
        _own_groups.clear()
        _own_groups[group] = new_group(group._ranks)
    return _own_groups[group]
