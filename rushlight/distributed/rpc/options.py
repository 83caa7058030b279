"""What `init_rpc` can be told about its transport."""

from __future__ import annotations

from . import constants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class RpcBackendOptions:
    """The limit of calls in seconds (0: none), and where the workers meet."""

    def __init__(
        self,
        rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str | None = constants.DEFAULT_INIT_METHOD,
    ) -> None:
        self.rpc_timeout, self.init_method = rpc_timeout, init_method


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """The same with the number of threads that run others' calls; under PyTorch's name.

    Devices can't be mapped: tensors travel through CPU memory, and this raises ValueError for maps."""

    def __init__(
        self,
        *,
        num_worker_threads: int = constants.DEFAULT_NUM_WORKER_THREADS,
        rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str | None = constants.DEFAULT_INIT_METHOD,
        device_maps: Any = None,
        devices: Any = None,
        _transports: Any = None,
        _channels: Any = None,
    ) -> None:
        super().__init__(rpc_timeout, init_method)
        if num_worker_threads < 1:
            raise ValueError(f"num_worker_threads must be positive, but got {num_worker_threads}")
        if device_maps or devices:
            raise ValueError(
                "device_maps and devices: tensors of remote calls travel through CPU memory only"
            )
        self.num_worker_threads, self.device_maps, self.devices = num_worker_threads, {}, []

    def set_device_map(self, to: Any, device_map: Any):
        raise ValueError("set_device_map: tensors of remote calls travel through CPU memory only")
