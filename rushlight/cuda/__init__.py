"""CUDA devices. Where there is none, questions are answered truthfully, the rest raises AssertionError."""

from rushlight import _C
from rushlight.cuda import graphs as graphs
from rushlight.cuda import memory as memory
from rushlight.cuda import random as random
from rushlight.cuda import streams as streams
from rushlight.cuda._devices import (
    _CudaDeviceProperties,
    _get_device_index,
    _index,
    _is_in_bad_fork,
    _lazy_call,
    _lazy_init,
)
from rushlight.cuda._devices import can_device_access_peer as can_device_access_peer
from rushlight.cuda._devices import current_device as current_device
from rushlight.cuda._devices import device as device
from rushlight.cuda._devices import device_count as device_count
from rushlight.cuda._devices import device_of as device_of
from rushlight.cuda._devices import get_arch_list as get_arch_list
from rushlight.cuda._devices import get_device_capability as get_device_capability
from rushlight.cuda._devices import get_device_name as get_device_name
from rushlight.cuda._devices import get_device_properties as get_device_properties
from rushlight.cuda._devices import get_gencode_flags as get_gencode_flags
from rushlight.cuda._devices import init as init
from rushlight.cuda._devices import is_available as is_available
from rushlight.cuda._devices import is_bf16_supported as is_bf16_supported
from rushlight.cuda._devices import is_initialized as is_initialized
from rushlight.cuda._devices import is_tf32_supported as is_tf32_supported
from rushlight.cuda._devices import set_device as set_device
from rushlight.cuda._devices import synchronize as synchronize
from rushlight.cuda._management import clock_rate as clock_rate
from rushlight.cuda._management import device_memory_used as device_memory_used
from rushlight.cuda._management import memory_usage as memory_usage
from rushlight.cuda._management import power_draw as power_draw
from rushlight.cuda._management import temperature as temperature
from rushlight.cuda._management import utilization as utilization
from rushlight.cuda.graphs import CUDAGraph as CUDAGraph
from rushlight.cuda.graphs import graph as graph
from rushlight.cuda.graphs import graph_pool_handle as graph_pool_handle
from rushlight.cuda.graphs import make_graphed_callables as make_graphed_callables
from rushlight.cuda.memory import *  # noqa: F403
from rushlight.cuda.random import *  # noqa: F403
from rushlight.cuda.streams import Event as Event
from rushlight.cuda.streams import ExternalStream as ExternalStream
from rushlight.cuda.streams import Stream as Stream
from rushlight.cuda.streams import StreamContext as StreamContext
from rushlight.cuda.streams import current_stream as current_stream
from rushlight.cuda.streams import default_stream as default_stream
from rushlight.cuda.streams import get_stream_from_external as get_stream_from_external
from rushlight.cuda.streams import is_current_stream_capturing as is_current_stream_capturing
from rushlight.cuda.streams import set_stream as set_stream
from rushlight.cuda.streams import stream as stream

OutOfMemoryError = _C.OutOfMemoryError
has_half, has_magma = True, False


class CudaError(RuntimeError):
    """An error code of the CUDA runtime."""


class DeferredCudaCallError(Exception):
    """Something that was to be done when CUDA came into use failed."""


def ipc_collect():
    """Nothing is shared with other processes."""
    _lazy_init()


def current_blas_handle():
    """The handle of cuBLAS, which this library does not share."""
    _lazy_init()
    raise NotImplementedError("torch.cuda.current_blas_handle: the library's handle is its own")


def get_sync_debug_mode():
    """Whether waits of the host for the device are reported; they never are."""
    _lazy_init()
    return 0


def set_sync_debug_mode(debug_mode):
    """Reports of waits are not supported; switching them off is."""
    _lazy_init()
    if debug_mode not in (0, "default"):
        raise NotImplementedError("torch.cuda.set_sync_debug_mode: waits are not reported")


class _TypeMeta(type):
    """A tensor type of the old naming: torch.cuda.FloatTensor."""

    def __instancecheck__(cls, instance):
        return getattr(instance, "is_cuda", False) and f"torch.cuda.{cls.__name__}" == instance.type()

    def __call__(cls, *args, **kwargs):
        if not is_available():
            raise TypeError(
                f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled."
            )
        import rushlight

        return getattr(rushlight, cls.__name__)(*args, **kwargs).cuda()


for _name in ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"):
    globals()[f"{_name}Tensor"] = _TypeMeta(f"{_name}Tensor", (), {"__module__": __name__})


TYPE_CHECKING = False
if TYPE_CHECKING:  # what `__getattr__` finds
    from rushlight.cuda import amp as amp
    from rushlight.cuda import comm as comm
    from rushlight.cuda import nccl as nccl
    from rushlight.cuda import nvtx as nvtx

    default_generators: tuple[_C.Generator, ...]


def __getattr__(name):
    from importlib import import_module

    if name in ("amp", "nvtx", "comm", "nccl"):
        return import_module(f"{__name__}.{name}")
    if name.endswith("Storage"):
        from rushlight import storage

        if name in storage._DTYPE_OF_NAME and not name.startswith("Q"):
            globals()[name] = storage._cuda_class(name)
            return globals()[name]
    if name == "default_generators":
        return tuple(_C._cuda_defaultGenerator(i) for i in range(device_count()))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
