"""The batch split over the devices of one process."""

import rushlight as torch
from rushlight.nn import Module

__all__ = ["DataParallel", "data_parallel"]


def _devices():
    cuda = getattr(torch, "cuda", None)
    return list(range(cuda.device_count())) if cuda is not None and cuda.is_available() else []


class DataParallel(Module):
    """Runs module on each device with a share of the batch; without devices, simply runs it."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        devices = _devices()
        self.module = module
        if not devices:
            self.device_ids = []
            return
        self.device_ids = list(devices if device_ids is None else device_ids)
        self.output_device = self.device_ids[0] if output_device is None else output_device
        self.dim = dim
        if len(self.device_ids) == 1:
            self.module.to(f"cuda:{self.device_ids[0]}")

    def forward(self, *inputs, **kwargs):
        if len(self.device_ids) > 1:
            raise NotImplementedError(
                "DataParallel: more than one device is not supported; use one device_id"
            )
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Run module once on inputs as `DataParallel` would."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
