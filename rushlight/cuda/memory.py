"""Memory of CUDA devices, and page-locked memory of the host: what is held, by whom, and since when."""

import pickle
import sys
from collections import OrderedDict
from contextlib import contextmanager
from types import FrameType

from rushlight import _C
from rushlight.cuda._devices import _index, _require, is_initialized

__all__ = [
    "CUDAPluggableAllocator",
    "MemPool",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "change_current_allocator",
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]


# --- tensors


def pinned(tensor):
    """A copy of a tensor in page-locked memory; the tensor itself where it is there already."""
    if not _C._cuda_getDeviceCount():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return tensor if tensor.is_pinned() else _C._cuda_pinMemory(tensor)


def record_stream(tensor, stream):
    """Keep a tensor's memory, once it is gone, until what the stream was given by then is done."""
    number = getattr(stream, "_number", None)
    if number is None and not hasattr(stream, "record_event"):
        raise RuntimeError("unknown parameter type")
    if number is not None:
        _C._cuda_recordStream(tensor, number)


def caching_allocator_alloc(size, device=None, stream=None):
    """Memory for others from the same pools; returns its address."""
    _require()
    index = _index(device, True)
    if not isinstance(size, int):
        raise TypeError(f"Invalid type for size argument: {type(size)}, must be an int")
    if stream is None:
        return _C._cuda_caching_allocate(size, index)
    before = _C._cuda_currentStream(index)
    _C._cuda_setStream(stream._number)
    try:
        return _C._cuda_caching_allocate(size, index)
    finally:
        _C._cuda_setStream(before)


def caching_allocator_delete(mem_ptr):
    """Gives back what ``caching_allocator_alloc`` gave."""
    _C._cuda_caching_delete(mem_ptr)


def caching_allocator_enable(value=True):
    """The caching allocator is always on; switching it off is not supported."""
    if not value and is_initialized():
        raise NotImplementedError("torch.cuda: the caching allocator cannot be switched off")


@contextmanager
def caching_allocator_disabled():
    """Refused: the caching allocator is always on."""
    caching_allocator_enable(False)
    yield


# --- statistics


def memory_stats_as_nested_dict(device=None):
    """The allocator's counters, as nested dicts."""
    return _C._cuda_memoryStats(_index(device, True)) if is_initialized() else {}


def host_memory_stats_as_nested_dict():
    """The counters of the allocator of page-locked memory, as nested dicts."""
    return _C._cuda_hostMemoryStats() if is_initialized() else {}


def _flat(nested):
    found = []

    def walk(prefix, value):
        if isinstance(value, dict):
            for name, inner in value.items():
                walk(f"{prefix}.{name}" if prefix else name, inner)
        else:
            found.append((prefix, value))

    walk("", nested)
    return OrderedDict(sorted(found))


def memory_stats(device=None):
    """The allocator's counters: ``"allocated_bytes.all.peak"`` and others."""
    return _flat(memory_stats_as_nested_dict(device))


def host_memory_stats():
    """The counters of the allocator of page-locked memory."""
    return _flat(host_memory_stats_as_nested_dict())


def _counted(name):
    def counted(device=None):
        return memory_stats(device).get(name, 0)

    return counted


def memory_allocated(device=None):
    """Bytes that tensors hold."""
    return _counted("allocated_bytes.all.current")(device)


def max_memory_allocated(device=None):
    """The most bytes that tensors held, since the start or the last ``reset_peak_memory_stats``."""
    return _counted("allocated_bytes.all.peak")(device)


def memory_reserved(device=None):
    """Bytes that the allocator holds."""
    return _counted("reserved_bytes.all.current")(device)


def max_memory_reserved(device=None):
    """The most bytes that the allocator held."""
    return _counted("reserved_bytes.all.peak")(device)


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def reset_peak_memory_stats(device=None):
    """Peaks begin anew from what is held now."""
    _C._cuda_resetPeakMemoryStats(_index(device, True))


def reset_accumulated_memory_stats(device=None):
    """Totals begin anew from zero."""
    _C._cuda_resetAccumulatedMemoryStats(_index(device, True))


def reset_max_memory_allocated(device=None):
    """The former name of ``reset_peak_memory_stats``."""
    reset_peak_memory_stats(device)


reset_max_memory_cached = reset_max_memory_allocated


def reset_peak_host_memory_stats():
    _C._cuda_resetPeakMemoryStats(None)


def reset_accumulated_host_memory_stats():
    _C._cuda_resetAccumulatedMemoryStats(None)


def empty_cache():
    """Gives the memory that no tensor holds back to the driver."""
    if is_initialized():
        _C._cuda_emptyCache()


def mem_get_info(device=None):
    """Free and total bytes of a device, as its driver counts."""
    _require()
    return _C._cuda_memGetInfo(_index(device, True))


def set_per_process_memory_fraction(fraction, device=None):
    """Bounds what this process takes of a device's memory; more is an out-of-memory error."""
    _require()
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _C._cuda_setMemoryFraction(fraction, _index(device, True))


def get_per_process_memory_fraction(device=None):
    """The bound that ``set_per_process_memory_fraction`` set; 1 at the start."""
    _require()
    return _C._cuda_getMemoryFraction(_index(device, True))


def get_allocator_backend():
    """ "native", or "pluggable" once the allocator was changed."""
    return "pluggable" if _changed else "native"


# --- reports

_ROWS = (
    ("Allocated memory", "allocated_bytes", True),
    ("Active memory", "active_bytes", True),
    ("Requested memory", "requested_bytes", True),
    ("GPU reserved memory", "reserved_bytes", True),
    ("Non-releasable memory", "inactive_split_bytes", True),
    ("Allocations", "allocation", False),
    ("Active allocs", "active", False),
    ("GPU reserved segments", "segment", False),
    ("Non-releasable allocs", "inactive_split", False),
)


def _size(n):
    for unit in ("B  ", "KiB", "MiB", "GiB", "TiB"):
        if abs(n) < 768 or unit == "TiB":
            return f"{int(n)} {unit}"
        n /= 1024


def _count(n):
    for unit in (" ", "K", "M"):
        if n < 750 * 1000 or unit == "M":
            return f"{int(n):7d} {unit} "
        n /= 1000


def memory_summary(device=None, abbreviated=False):
    """A table of the allocator's counters."""
    index = _index(device, True)
    stats = memory_stats(index)
    retries, failures = stats["num_alloc_retries"], stats["num_ooms"]
    line, rule = "|" + "=" * 75 + "|", "|" + "-" * 75 + "|"
    out = [
        line,
        f"|{f'PyTorch CUDA memory summary, device ID {index}':^75}|",
        rule,
        f"|  CUDA OOMs: {failures:<12} |        cudaMalloc retries: {retries:<8}        |",
        line,
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |",
    ]
    for title, name, is_size in _ROWS:
        out.append(rule)
        show = _size if is_size else _count
        for pool, label in (
            ("all", title),
            ("large_pool", "      from large pool"),
            ("small_pool", "      from small pool"),
        ):
            if abbreviated and pool != "all":
                continue
            numbers = (
                show(stats[f"{name}.{pool}.{kind}"]) for kind in ("current", "peak", "allocated", "freed")
            )
            out.append(f"| {label:<21} |" + "|".join(f"{n:>11} " for n in numbers) + "|")
    return "\n".join([*out, line, ""])


def list_gpu_processes(device=None):
    """The processes that hold memory of a device; asks NVIDIA's management library for them."""
    from rushlight.cuda._management import library

    try:
        nvml = library()
    except ModuleNotFoundError:
        return "pynvml module not found, please install nvidia-ml-py"
    index = _index(device, True)
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    lines = [f"GPU:{index}"]
    for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle):
        lines.append(f"process {process.pid:>10d} uses {process.usedGpuMemory / 2**20:>12.3f} MB GPU memory")
    return "\n".join(lines if len(lines) > 1 else [*lines, "no processes are running"])


# --- snapshots and history

_places: dict[tuple, int] = {}  # what allocates: frames of the program, to numbers from 1 on
_frames: list[tuple[tuple[str, int, str], ...]] = [()]


def place():
    """The number of the place in the program that is running now; the allocator's history keeps it."""
    frames: list[tuple[str, int, str]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(frames) < 40:
        code = frame.f_code
        frames.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    key = tuple(frames)
    number = _places.get(key)
    if number is None:
        number = _places.setdefault(key, len(_frames))
        _frames.append(key)
    return number


def _with_frames(entry):
    """A record of the core, with its place as the list of frames that PyTorch's viewer reads."""
    entry["frames"] = [
        {"filename": f, "line": n, "name": name} for f, n, name in _frames[entry["frames"] or 0]
    ]
    return entry


def _snapshot(device=None, augment_with_fx_traces=False):
    """All segments and, where it is recorded, the history, as PyTorch's viewer reads them."""
    found = _C._cuda_memorySnapshot()
    for segment in found["segments"]:
        segment["frames"] = []
        for block in segment["blocks"]:
            _with_frames(block)
    for trace in found["device_traces"]:
        for event in trace:
            _with_frames(event)
    found["allocator_settings"] = {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False}
    found["external_annotations"] = []
    if device is not None:
        index = _index(device, True)
        found["segments"] = [s for s in found["segments"] if s["device"] == index]
    return found


def memory_snapshot(mempool_id=None, include_traces=True):
    """The segments of all devices and the blocks in them; with a pool's id, its segments alone."""
    segments = _snapshot()["segments"]
    if mempool_id is None:
        return segments
    return [s for s in segments if s["segment_pool_id"] == tuple(mempool_id)]


def _record_memory_history(
    enabled="all",
    context="all",
    stacks="all",
    max_entries=sys.maxsize,
    device=None,
    clear_history=False,
    **kwargs,
):
    """Keeps what the allocator does, and the places in the program that ask; ``enabled=None`` stops."""
    if enabled not in (None, False, True, "state", "all"):
        raise RuntimeError(f"Invalid 'enabled' argument: {enabled!r}; expected None, 'state' or 'all'")
    if not is_initialized():
        _require()
    kept = 0 if not enabled else 1 if enabled == "state" else min(int(max_entries), 2**62)
    if clear_history:
        _C._cuda_recordMemoryHistory(0, False)
    _C._cuda_recordMemoryHistory(kept, context is not None)


def _dump_snapshot(filename="dump_snapshot.pickle"):
    """Writes a snapshot to a file for the viewer."""
    with open(filename, "wb") as f:
        pickle.dump(_snapshot(), f)


# --- pools of one's own


class MemPool:
    """A pool of memory of its own: what is allocated within ``use_mem_pool`` comes from it.

    Args:
        allocator: a ``CUDAPluggableAllocator.allocator()`` that gives the pool its segments.
    """

    def __init__(self, allocator=None, use_on_oom=False, no_split=False):
        if not _C._cuda_getDeviceCount():
            raise RuntimeError("Tried to instantiate dummy base class _MemPool")
        if allocator is not None:
            _check_allocator(allocator)
        self._device, self._number = _C._cuda_getDevice(), _C._cuda_newPool()
        self.allocator, self._held = allocator, 0
        if allocator is not None:
            _C._cuda_setAllocator(self._number, *allocator._addresses)

    @property
    def id(self):
        return self._number, 0

    def use_count(self):
        """By how many regions it was used, this object counted."""
        return 1 + self._held

    def snapshot(self, include_traces=True):
        return memory_snapshot(self.id)

    def _begin(self, device):
        _C._cuda_beginPool(device, self._number)
        self._held += 1
        self._device = device

    def __del__(self):
        for _ in range(getattr(self, "_held", 0)):
            _C._cuda_releasePool(self._device, self._number)


@contextmanager
def use_mem_pool(pool, device=None):
    """Within it, this thread allocates from the pool."""
    index = _index(device, True)
    pool._begin(index)
    try:
        yield
    finally:
        _C._cuda_endPool(index)


class CUDAPluggableAllocator:
    """Two functions of a library that give and take memory of devices.

    Args:
        path_to_so_file: the library.
        alloc_fn_name: ``void* (ssize_t size, int device, cudaStream_t stream)``; null for none left.
        free_fn_name: ``void (void* address, ssize_t size, int device, cudaStream_t stream)``.
    """

    def __init__(self, path_to_so_file, alloc_fn_name, free_fn_name):
        import ctypes

        self._library = ctypes.CDLL(path_to_so_file)
        functions = (getattr(self._library, name) for name in (alloc_fn_name, free_fn_name))
        self._addresses = tuple(ctypes.cast(function, ctypes.c_void_p).value for function in functions)

    def allocator(self):
        """What ``MemPool`` takes."""
        return self


_changed = None  # the allocator of all memory, kept alive


def _check_allocator(allocator):
    if not isinstance(allocator, CUDAPluggableAllocator):
        raise TypeError(f"expected a CUDAPluggableAllocator, but got {type(allocator).__name__}")


def change_current_allocator(allocator):
    """Take all memory of devices from an allocator, uncached. Raises RuntimeError once memory was taken."""
    global _changed
    _check_allocator(allocator)
    _require()
    _C._cuda_setAllocator(0, *allocator._addresses)
    _changed = allocator
