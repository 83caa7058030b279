"""CUDA devices. Where there is none, questions are answered truthfully, the rest raises AssertionError."""

from rushlight import _C
from rushlight.cuda import graphs, memory, random, streams
from rushlight.cuda._devices import (
    _CudaDeviceProperties,
    _get_device_index,
    _index,
    _is_in_bad_fork,
    _lazy_init,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
    synchronize,
)
from rushlight.cuda._management import (
    clock_rate,
    device_memory_used,
    memory_usage,
    power_draw,
    temperature,
    utilization,
)
from rushlight.cuda.graphs import CUDAGraph, graph, graph_pool_handle, make_graphed_callables
from rushlight.cuda.memory import *  # noqa: F403
from rushlight.cuda.random import *  # noqa: F403
from rushlight.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    is_current_stream_capturing,
    set_stream,
    stream,
)

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


def __getattr__(name):
    from importlib import import_module

    if name in ("amp", "nvtx", "comm", "nccl"):
        return import_module(f"{__name__}.{name}")
    if name == "default_generators":
        return tuple(_C._cuda_defaultGenerator(i) for i in range(device_count()))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
