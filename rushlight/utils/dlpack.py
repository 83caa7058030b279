"""Exchange of tensors with other libraries through DLPack, without copying."""

from enum import IntEnum

import rushlight

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(IntEnum):
    """The kinds of devices that DLPack knows."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor):
    """A capsule that shares the tensor's memory; it can be taken once."""
    return tensor.detach().__dlpack__()


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor on the memory of an object with ``__dlpack__``, or of a capsule."""
    return rushlight.from_dlpack(ext_tensor, device=device, copy=copy)
