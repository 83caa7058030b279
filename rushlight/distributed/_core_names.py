"""What PyTorch's extension has of process groups, `torch._C._distributed_c10d`."""

from rushlight.distributed import (
    DebugLevel,
    FileStore,
    GradBucket,
    HashStore,
    PrefixStore,
    ProcessGroup,
    ProcessGroupGloo,
    ReduceOp,
    Store,
    TCPStore,
    Work,
    _options,
    _resolve_process_group,
    get_debug_level,
)
from rushlight.distributed._options import *  # noqa: F403

__all__ = [
    *_options.__all__,
    "DebugLevel",
    "FileStore",
    "GradBucket",
    "HashStore",
    "PrefixStore",
    "ProcessGroup",
    "ProcessGroupGloo",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "_resolve_process_group",
    "get_debug_level",
]
