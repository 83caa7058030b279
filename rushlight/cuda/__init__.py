"""CUDA devices. Where there is none, questions are answered truthfully, the rest raises AssertionError."""

from rushlight import _C
from rushlight._absent import refuse

OutOfMemoryError = _C.OutOfMemoryError
has_half = has_magma = False
default_generators = ()
_initialized = False


def is_available():
    """Whether there is a CUDA device."""
    return device_count() > 0


def device_count():
    """The number of CUDA devices; 0 without the library, the driver or the hardware."""
    return _C._cuda_getDeviceCount()


def is_initialized():
    return is_available()


def current_device():
    """The number of this thread's current device."""
    return _C._cuda_getDevice()


def set_device(device):
    """Makes a device this thread's current one; a negative number changes nothing."""
    index = _index(device)
    if index >= 0:
        _C._cuda_setDevice(index)


def synchronize(device=None):
    """Waits for all work of a device, by default the current one."""
    _C._cuda_synchronize(_index(device))


def _index(device):
    """The number of what names a device; -1 for the current one."""
    if device is None:
        return -1
    if isinstance(device, int):
        return device
    from rushlight import device as make

    found = make(device)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return -1 if found.index is None else found.index


def is_bf16_supported(including_emulation=True):
    return False


def is_tf32_supported():
    return False


def is_current_stream_capturing():
    return False


def get_arch_list():
    return []


def get_gencode_flags():
    return ""


def can_device_access_peer(device, peer_device):
    return False


def _is_in_bad_fork():
    return False


def manual_seed(seed):
    """Nothing to seed."""


def manual_seed_all(seed):
    """Nothing to seed."""


def seed():
    """Nothing to seed."""


def seed_all():
    """Nothing to seed."""


def empty_cache():
    """Nothing is cached."""


def ipc_collect():
    """Nothing to collect."""


def get_rng_state_all():
    return []


def set_rng_state_all(new_states):
    """Nothing to set."""


def memory_allocated(device=None):
    return 0


memory_reserved = memory_cached = max_memory_allocated = max_memory_reserved = max_memory_cached = (
    memory_allocated
)


def reset_peak_memory_stats(device=None):
    """Nothing was counted."""


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = (
    reset_peak_memory_stats
)


def memory_stats(device=None):
    return {}


class device:
    """A context that selects a device; -1 and None select nothing."""

    def __init__(self, device):
        self.idx, self.prev_idx = _index(device), -1

    def __enter__(self):
        if self.idx >= 0:
            self.prev_idx = current_device()
            set_device(self.idx)

    def __exit__(self, *exc):
        set_device(self.prev_idx)
        return False


class device_of(device):
    """A context that selects the device of a tensor; nothing for a tensor on the CPU."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else None)


class stream:
    """A context that selects a stream; None selects nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None


StreamContext = stream
_refuse = refuse("CUDA")
_lazy_init = init = current_stream = default_stream = set_stream = _refuse
get_device_name = get_device_capability = get_device_properties = get_rng_state = set_rng_state = (
    initial_seed
) = _refuse
mem_get_info = memory_summary = memory_snapshot = set_per_process_memory_fraction = utilization = (
    temperature
) = _refuse
graph_pool_handle = make_graphed_callables = current_blas_handle = list_gpu_processes = clock_rate = (
    power_draw
) = _refuse


class _NeedsCuda:
    def __init__(self, *args, **kwargs):
        raise RuntimeError(f"Tried to instantiate dummy base class {type(self).__name__}")


class Stream(_NeedsCuda):
    """A queue of work on a CUDA device."""


class ExternalStream(Stream):
    """A stream that another library made."""


class Event(_NeedsCuda):
    """A mark in a CUDA stream."""


class CUDAGraph(_NeedsCuda):
    """A recorded sequence of CUDA kernels."""


class graph(_NeedsCuda):
    """A context that records a CUDAGraph."""


class _CudaDeviceProperties:
    """The facts of a CUDA device."""


class _TypeMeta(type):
    def __instancecheck__(cls, instance):
        return False

    def __call__(cls, *args, **kwargs):
        raise TypeError(
            f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled."
        )


for _name in ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"):
    globals()[f"{_name}Tensor"] = _TypeMeta(f"{_name}Tensor", (), {"__module__": __name__})


def __getattr__(name):
    from importlib import import_module

    if name in ("amp", "nvtx", "random", "memory", "streams", "graphs"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
