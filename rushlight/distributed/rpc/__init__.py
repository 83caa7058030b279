"""Remote procedure calls: functions called on other workers, references to what lives there.

`init_rpc("worker0", rank=0, world_size=2)` in every process, then `rpc_sync("worker1", torch.add, (a, b))`,
`rpc_async`, `remote`. Objects travel pickled, so all workers must trust each other; tensors travel as they
are. `torch.distributed.autograd` differentiates through the calls.
"""

import enum

from . import api, constants, functions, options
from ._agent import RemoteException, WorkerInfo
from .api import (
    RRef,
    _set_rpc_timeout,
    get_rpc_timeout,
    get_worker_info,
    init_rpc,
    remote,
    rpc_async,
    rpc_sync,
    shutdown,
)
from .options import RpcBackendOptions, TensorPipeRpcBackendOptions

PyRRef = RRef


class BackendType(enum.Enum):
    """Kinds of transport; there is one, on sockets, under PyTorch's name."""

    TENSORPIPE = "TENSORPIPE"


def is_available():
    return True


__all__ = [
    "BackendType",
    "PyRRef",
    "RRef",
    "RemoteException",
    "RpcBackendOptions",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "api",
    "constants",
    "functions",
    "get_rpc_timeout",
    "get_worker_info",
    "init_rpc",
    "is_available",
    "options",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]
