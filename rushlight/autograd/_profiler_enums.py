"""The small vocabularies of the profiler."""

from dataclasses import dataclass, field
from enum import Enum, IntEnum

__all__ = ["DeviceType", "ProfilerActivity", "RecordScope"]


class DeviceType(IntEnum):
    """Where something ran; the numbers are PyTorch's."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    HIP = 6
    XLA = 9
    MPS = 13
    Meta = 14
    HPU = 15
    XPU = 12
    MTIA = 18
    PrivateUse1 = 20

    def __str__(self):
        return f"DeviceType.{self.name}"

    __repr__ = __str__


class ProfilerActivity(Enum):
    """What a profiler looks at."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5

    def __str__(self):
        return f"ProfilerActivity.{self.name}"


class RecordScope(IntEnum):
    """What kind of thing an event is."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    USER_SCOPE = 7


@dataclass
class _ExperimentalConfig:
    """PyTorch's further options; of them `profile_all_threads` means something on the CPU."""

    profiler_metrics: list[str] = field(default_factory=list)
    profiler_measure_per_kernel: bool = False
    verbose: bool = False
    performance_events: list[str] = field(default_factory=list)
    enable_cuda_sync_events: bool = False
    adjust_profiler_step: bool = False
    disable_external_correlation: bool = False
    profile_all_threads: bool = False
    capture_overload_names: bool = False
    record_python_gc_info: bool = False
    expose_kineto_event_metadata: bool = False
    custom_profiler_config: str = ""
    adjust_timestamps: bool = False
    trace_only: bool = False
