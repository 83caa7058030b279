"""The former home of `torch.distributed.tensor`."""

from rushlight.distributed.tensor import *  # noqa: F403
from rushlight.distributed.tensor import DeviceMesh, init_device_mesh
from rushlight.distributed.tensor import __all__ as _names

__all__ = [*_names, "DeviceMesh", "init_device_mesh"]
