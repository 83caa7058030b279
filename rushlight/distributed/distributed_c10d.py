"""Process groups under the name that PyTorch gives the module with all of it."""
# ruff: noqa: F401

from ._by_device import coalescing_manager as _coalescing_manager
from ._collectives import (
    _all_gather_base,
    _check_tensor,
    _reduce_scatter_base,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    supports_complex,
)
from ._debug import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from ._errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from ._file_store import FileStore
from ._gloo_group import GlooGroup as ProcessGroupGloo
from ._gloo_group import is_gloo_available
from ._initialize import (
    SHRINK_ABORT,
    SHRINK_DEFAULT,
    _new_process_group_helper,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    shrink_group,
    split_group,
)
from ._messages import (
    P2POp,
    _object_to_tensor,
    _tensor_to_object,
    all_gather_object,
    batch_isend_irecv,
    broadcast_object_list,
    gather_object,
    irecv,
    isend,
    recv,
    recv_object_list,
    scatter_object_list,
    send,
    send_object_list,
)
from ._options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from ._process_group import (
    Backend,
    BackendConfig,
    GroupMember,
    ProcessGroup,
    _get_default_group,
    _group_or_default,
    _rank_not_in_group,
    _world,
    group,
    is_backend_available,
)
from ._reduce_op import ReduceOp, reduce_op
from ._reduce_op import make_nccl_premul_sum as _make_nccl_premul_sum
from ._tcp_store import TCPStore
from ._work import Work
from .constants import default_pg_nccl_timeout, default_pg_timeout
from .rendezvous import register_rendezvous_handler, rendezvous
from .store import HashStore, PrefixStore, Store

__all__ = [
    "AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions", "AllreduceOptions",
    "BarrierOptions", "BroadcastOptions", "GatherOptions", "ReduceOptions",
    "ReduceScatterOptions", "ScatterOptions",
    "Backend", "BackendConfig", "DebugLevel", "DistBackendError", "DistError", "DistNetworkError",
    "DistStoreError", "FileStore", "GroupMember", "GroupName", "HashStore", "P2POp", "PrefixStore",
    "ProcessGroup", "ProcessGroupGloo", "QueueEmptyError", "ReduceOp", "SHRINK_ABORT", "SHRINK_DEFAULT",
    "Store", "TCPStore", "Work", "all_gather", "all_gather_coalesced", "all_gather_into_tensor",
    "all_gather_object", "all_gather_single", "all_reduce", "all_reduce_coalesced", "all_to_all",
    "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list",
    "default_pg_nccl_timeout", "default_pg_timeout", "destroy_process_group", "gather", "gather_object",
    "get_backend", "get_backend_config", "get_debug_level", "get_default_backend_for_device",
    "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count", "get_process_group_ranks",
    "get_rank", "get_world_size", "group", "init_process_group", "irecv", "is_backend_available",
    "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend", "monitored_barrier",
    "new_group", "new_subgroups", "new_subgroups_by_enumeration", "recv", "recv_object_list", "reduce",
    "reduce_op", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor",
    "register_rendezvous_handler", "rendezvous", "scatter", "scatter_object_list", "send",
    "send_object_list", "set_debug_level", "set_debug_level_from_env", "shrink_group", "split_group",
    "supports_complex",
]  # fmt: skip

GroupName = str
_pg_map = _world.pg_map


def _get_default_store():
    """The store in which the default group's processes met."""
    return _get_default_group()._root_store


def _get_pg_default_device(group=None):  # noqa: F811
    """The device of a group's tensors."""
    from .. import device

    return device(_group_or_default(group).wire_device())


_get_global_rank = get_global_rank  # its former name
_get_object_coll_device = _device_capability = _get_pg_default_device


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """The group of a name; LookupError when there is none."""
    if group_name not in _world.groups:
        raise LookupError(f"Could not resolve the process group registered under the name {group_name!r}")
    return _world.groups[group_name]


def _get_group_tag(pg) -> str:
    return f"user:{pg.group_name}"


def _find_pg_by_ranks_and_tag(tag, ranks):
    """The group of just these ranks, or None."""
    return next((g for g in _world.groups.values() if sorted(g._ranks) == sorted(ranks)), None)


def _get_pg_config(group=None):  # noqa: F811
    """What tools that read traces want to know of a group."""
    group = _group_or_default(group)
    ranks = get_process_group_ranks(group)
    name, purpose = group.group_name, group.group_desc
    config = {"pg_name": name, "pg_desc": purpose, "backend_config": get_backend_config(group)}
    return {**config, "pg_size": len(ranks), "ranks": ranks}


def _get_all_pg_configs():
    """The configurations of all groups that this process is in."""
    return [_get_pg_config(known) for known in _world.pg_map]
