"""Making and ending process groups, and asking who is in them."""

from __future__ import annotations

import os
from datetime import timedelta

from rushlight._command.names import show_from, show_public_from

from ._gloo_group import is_gloo_available
from ._job_environment import from_job
from ._process_group import (
    Backend,
    BackendConfig,
    GroupMember,
    OwnGroup,
    ProcessGroup,
    _get_default_group,
    _group_or_default,
    _rank_not_in_group,
    _world,
    is_backend_available,
)
from ._watch import Watch
from .constants import default_pg_timeout
from .elastic._launcher import end_with_launcher
from .elastic.multiprocessing.errors import record_uncaught_exceptions
from .rendezvous import rendezvous
from .store import PrefixStore, check_timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def is_available() -> bool:
    """Whether this build can make process groups."""
    return is_gloo_available()


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return _world.default_pg is not None


def is_mpi_available() -> bool:
    """Whether an MPI library is installed."""
    return is_backend_available("mpi")


def is_nccl_available() -> bool:
    """Whether there is a CUDA device, and NCCL is installed."""
    return is_backend_available("nccl")


def is_ucc_available() -> bool:
    return False


is_xccl_available = is_ucc_available


def is_torchelastic_launched() -> bool:
    """Whether a launcher started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
) -> None:
    """Join the job: meet the other processes and connect to them.

    Args:
        backend: "gloo", "nccl", "mpi" under mpirun, or pairs such as "cpu:gloo,cuda:nccl", which is
            the default where NCCL is found.
        init_method: URL of the meeting point, `env://` unless a store is given (see `rendezvous`).
        timeout: limit of every collective, a timedelta; 30 minutes.
        world_size, rank: number of processes, and which of them this is.
        store: a Store in which the processes meet, instead of `init_method`.

    Raises:
        ValueError: the process group exists already, or arguments are missing or contradict each other.
        DistBackendError: the backend is not part of this build, or the others cannot be reached.
    """
    record_uncaught_exceptions()
    end_with_launcher()
    if _world.default_pg is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise ValueError("Cannot specify both init_method and store.")
    timeout = check_timeout(timeout or default_pg_timeout)
    backend = backend or Backend.UNDEFINED
    first = BackendConfig(backend).first_backend()
    if store is None and init_method is None and first == Backend.MPI:
        from ._mpi_group import meet

        store, rank, world_size = meet(timeout)
    elif store is None:
        meeting = rendezvous(init_method or "env://", rank, world_size, timeout=timeout)
        store, rank, world_size = next(meeting)
        store.set_timeout(timeout)
    elif world_size <= 0 or rank < 0:
        raise ValueError("world_size must be positive and rank non-negative if using store")
    name = _world.next_name()
    keys = PrefixStore(f"default_pg/{name}", store)
    group = OwnGroup(name, range(world_size), rank, backend, keys, timeout, "default_pg")
    group._root_store = store
    _world.default_pg = _world.groups[name] = group
    if world_size > 1:
        _world.watch = Watch(PrefixStore(f"watch/{name}", store), rank, world_size)
    group.watch_with(_world.watch)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group; the default one means all of them.

    Raises ValueError when the group is not known."""
    if _rank_not_in_group(group):
        return
    target = _group_or_default(group)
    if target not in _world.groups.values():
        raise ValueError("Invalid process group specified or has been destroyed.")
    leaving = list(_world.groups.values()) if target is _world.default_pg else [target]
    if target is _world.default_pg and _world.watch is not None:
        watch, _world.watch = _world.watch, None
        watch.close()
    for member in reversed(leaving):  # each is left for good, whatever fails meanwhile
        _world.forget(member)
        member.engine.close()


def _known(group):
    """The group, the default one for None; ValueError for what is no group, or one no longer."""
    target = _group_or_default(group)
    if target is not _world.default_pg and target not in _world.groups.values():
        text = f"Group {group} is not registered, please create group with torch.distributed.new_group API"
        raise ValueError(text)
    return target


def get_rank(group: ProcessGroup | None = None) -> int:
    """This process's rank in the group, -1 outside of it; ValueError when the group is not known."""
    if _rank_not_in_group(group):
        return -1
    return _known(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes in the group, -1 outside of it."""
    if _rank_not_in_group(group):
        return -1
    return _group_or_default(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name of the group's backend; ValueError when the group is not known."""
    if _rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    return Backend(_known(group).name())


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Which backend serves which device, as "cpu:gloo"."""
    group = _group_or_default(group)
    return str(group._config or group.name())


def get_default_backend_for_device(device: Any) -> str:
    """The backend that serves a device by default."""
    kind = str(getattr(device, "type", device)).split(":")[0]
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The global ranks of a group, by rank in it."""
    return list(_group_or_default(group)._ranks)


def get_group_rank(group: ProcessGroup | None, global_rank: int) -> int:
    """A global rank's rank in a group; ValueError when it is not in it. In the default group, itself."""
    if (group := _known(group)) is _world.default_pg:
        return global_rank
    ranks = group._ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup | None, group_rank: int) -> int:
    """The global rank of a group's rank; ValueError when there is none. In the default group, itself."""
    if (group := _known(group)) is _world.default_pg:
        return group_rank
    ranks = group._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_pg_count() -> int:
    """How many groups this process is in."""
    return len(_world.groups)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank among the processes of this host, as the launcher says it in LOCAL_RANK."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if "local_rank" in (job := from_job()):
        return int(job["local_rank"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` "
        "to work, assuming you are not running in a multi-device context and want the code to run locally."
    )


def new_group(
    ranks: Iterable[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some of the processes; every process of the job must make this call, in the same order.

    With `use_local_synchronization` only its members need to. Returns the group, or
    `GroupMember.NON_GROUP_MEMBER` to those who are not in it (None with `use_local_synchronization`).
    Raises ValueError for ranks that do not exist or that come twice.
    """
    default = _get_default_group()
    members = list(range(default.size())) if ranks is None else [int(rank) for rank in ranks]
    if len(set(members)) != len(members):
        raise ValueError(f"new_group: a rank comes twice in {members}")
    if not members or min(members) < 0 or max(members) >= default.size():
        raise ValueError(
            "the new group's rank should be within the world_size set by init_process_group, but got ranks "
            f"{members} of {default.size()}"
        )
    if sort_ranks:
        members.sort()
    name = _world.local_name(members) if use_local_synchronization else _world.next_name()
    if default.rank() not in members:
        return None if use_local_synchronization else GroupMember.NON_GROUP_MEMBER
    keys = PrefixStore(name, default._store)
    timeout = check_timeout(timeout or default._timeout)
    group = OwnGroup(
        name, members, default.rank(), backend or str(default._config), keys, timeout, group_desc
    )
    group.watch_with(_world.watch)
    _world.groups[name] = group
    return group


def _new_process_group_helper(
    group_size: int,
    group_rank: int,
    global_ranks_in_group: Iterable[int],
    backend: str | None,
    store: Any,
    group_name: str,
    backend_options: Any = None,
    timeout: timedelta | None = None,
    pg_tag: str | None = None,
    device_id: Any = None,
    group_desc: str | None = None,
) -> Any:
    """A group whose processes met in `store`, with or without a default one: trainers join servers so.

    Without global ranks the group has a numbering of its own. Returns the group and its part of the store.
    Raises ValueError when there is a group of that name.
    """
    if group_name in _world.groups:
        raise ValueError(
            "The specified group name has already been created, please use a different group name"
        )
    ranks = [int(rank) for rank in global_ranks_in_group]
    if ranks and _get_default_group().rank() not in ranks:
        return GroupMember.NON_GROUP_MEMBER, None
    members = ranks or list(range(group_size))
    keys = PrefixStore(f"{group_name}/", store)
    timeout = check_timeout(timeout or default_pg_timeout)
    group = OwnGroup(
        group_name, members, members[group_rank], backend or Backend.UNDEFINED, keys, timeout, group_desc
    )
    group.watch_with(_world.watch if ranks else None)  # the watch knows processes by their global ranks
    _world.groups[group_name] = group
    return group, keys


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> Any:
    """Groups of `group_size` consecutive ranks; returns (the one with this process, all of them)."""
    world = get_world_size()
    if group_size is None:
        from .. import cuda

        if not cuda.is_available():
            raise ValueError("new_subgroups: group_size is needed, for there are no CUDA devices to count")
        group_size = cuda.device_count()
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if world < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({world})")
    if world % group_size:
        raise ValueError(f"The world size ({world}) must be divisible by '{group_size=}'")
    parts = [list(range(first, first + group_size)) for first in range(0, world, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> Any:
    """The groups of the listed ranks; returns (the one with this process or None, all of them)."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    flat = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(flat)) != len(flat):
        raise ValueError(
            f"new_subgroups_by_enumeration: a rank is in two groups of {ranks_per_subgroup_list}"
        )
    groups = [
        new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        for ranks in ranks_per_subgroup_list
    ]
    mine = [made for made in groups if not _rank_not_in_group(made)]
    return (mine[0] if mine else None), groups


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> Any:
    """Split a group into groups of its ranks; returns the one with this process, or None."""
    parent = _group_or_default(parent_pg)
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    found = None
    for ranks in split_ranks:
        made = new_group([parent._ranks[rank] for rank in ranks], timeout, backend, group_desc=group_desc)
        if not _rank_not_in_group(made):
            found = made
    return found


SHRINK_DEFAULT, SHRINK_ABORT = 0, 1


def shrink_group(
    ranks_to_exclude: list[int],
    group: ProcessGroup | None = None,
    shrink_flags: int = SHRINK_DEFAULT,
    pg_options: Any = None,
) -> Any:
    """The group without some of its ranks; only those who stay make this call.

    The default group is replaced by the smaller one, in which ranks are counted anew; all other groups end.
    `shrink_flags` changes nothing: calls that wait for a rank which has ended fail by themselves. The store
    must outlive who leaves: under a launcher it does, else the first rank serves it.

    Raises TypeError for what is no list, ValueError for ranks that do not exist, that come twice, or that are
    all; RuntimeError on a rank that is to leave.
    """
    parent = _group_or_default(group)
    leaving = _checked_leaving(ranks_to_exclude, parent)
    staying = [rank for index, rank in enumerate(parent._ranks) if index not in leaving]
    timeout, backend, is_default = parent._timeout, str(parent._config), parent is _world.default_pg
    if not is_default:
        name = f"shrunk {parent.group_name} to {'-'.join(map(str, staying))}"
        own = _get_default_group()
        keys = PrefixStore(name, own._store)
        made = OwnGroup(name, staying, own.rank(), backend, keys, timeout, parent.group_desc)
        made.watch_with(_world.watch)
        _world.groups[name] = made
        return made
    store, rank = parent._root_store, staying.index(parent._ranks[parent.rank()])
    name = f"{_world.next_name()}-shrunk-{'-'.join(map(str, staying))}"
    destroy_process_group()
    keys = PrefixStore(f"default_pg/{name}", store)
    made = OwnGroup(name, range(len(staying)), rank, backend, keys, timeout, "default_pg")
    made._root_store = store
    _world.default_pg = _world.groups[name] = made
    if len(staying) > 1:
        _world.watch = Watch(PrefixStore(f"watch/{name}", store), rank, len(staying))
    made.watch_with(_world.watch)
    return made


def _checked_leaving(ranks, parent):
    if not isinstance(ranks, list) or not all(isinstance(rank, int) for rank in ranks):
        raise TypeError(f"ranks_to_exclude must be a list of integers, but got {ranks!r}")
    if not ranks:
        raise ValueError("ranks_to_exclude cannot be empty")
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"ranks_to_exclude must not contain duplicates: {ranks}")
    if min(ranks) < 0 or max(ranks) >= parent.size():
        raise ValueError(f"ranks_to_exclude {ranks} are out of range of a group of {parent.size()}")
    if len(ranks) == parent.size():
        raise ValueError("Cannot exclude all ranks from process group")
    if parent.rank() in ranks:
        raise RuntimeError(f"Rank {parent.rank()} is in ranks_to_exclude and must not call shrink_group")
    return set(ranks)


show_from("distributed", is_available)
show_public_from("distributed.distributed_c10d", globals())
