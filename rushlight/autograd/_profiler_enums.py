"""The small vocabularies of the profiler."""

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
