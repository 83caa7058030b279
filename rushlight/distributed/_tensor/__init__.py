"""The former home of `torch.distributed.tensor`."""

from rushlight.distributed import tensor
from rushlight.distributed.tensor import *  # noqa: F403
from rushlight.distributed.tensor import DeviceMesh, init_device_mesh

__all__ = [*tensor.__all__, "DeviceMesh", "init_device_mesh"]
