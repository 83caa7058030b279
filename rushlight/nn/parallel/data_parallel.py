"""The batch split over the devices of one process."""

import warnings
from itertools import chain

import rushlight as torch
from rushlight.nn import Module

from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


def _devices(device_ids) -> list[int]:
    """The numbers of the devices; none where there is no device at all."""
    if not torch.cuda.is_available():
        return []
    every = range(torch.cuda.device_count()) if device_ids is None else device_ids
    return [torch.cuda._devices._index(d, True) for d in every]


def _check_balance(device_ids) -> None:
    """A warning for devices of which one has much less memory, or fewer processors, than another."""
    properties = [torch.cuda.get_device_properties(d) for d in device_ids]
    for what, of in ("memory", "total_memory"), ("multiprocessors", "multi_processor_count"):
        sizes = [getattr(p, of) for p in properties]
        if sizes and min(sizes) < 0.75 * max(sizes):
            less, more = device_ids[sizes.index(min(sizes))], device_ids[sizes.index(max(sizes))]
            warnings.warn(
                f"There is an imbalance between your GPUs: GPU {less} has less than 75% of the {what} of GPU "
                f"{more}. You can leave it out with the device_ids argument to DataParallel, or with "
                "CUDA_VISIBLE_DEVICES.",
                stacklevel=3,
            )


class DataParallel(Module):
    """Runs a module on several devices, each with a share of the batch; without devices, simply runs it.

    Each call copies the module to the devices; `DistributedDataParallel`, a process a device, is faster.

    Args:
        module (Module): lies on the first of the devices.
        device_ids (list of int or device): all devices by default.
        output_device (int or device): where results are gathered; the first device by default.
        dim (int): the dimension of the batch.

    Shape: arguments are cut along `dim`, results joined along it; other objects go to each device.

    Raises: RuntimeError where parameters or buffers lie on another device than the first.

    Example:
        >>> torch.nn.DataParallel(torch.nn.Linear(4, 2), device_ids=[])(torch.ones(3, 4)).shape
        torch.Size([3, 2])
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module = module
        self.device_ids = _devices(device_ids)
        self.dim = dim
        if not self.device_ids:
            return
        self.output_device = torch.cuda._devices._index(
            self.device_ids[0] if output_device is None else output_device, True
        )
        self.src_device_obj = torch.device("cuda", self.device_ids[0])
        _check_balance(self.device_ids)
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs, **kwargs):
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for tensor in chain(self.module.parameters(), self.module.buffers()):
            if tensor.device != self.src_device_obj:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {self.src_device_obj} "
                    f"(device_ids[0]) but found one of them on device: {tensor.device}"
                )
        shares, named = self.scatter(inputs, kwargs, self.device_ids)
        if not shares and not named:
            shares, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*shares[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(shares)])
        return self.gather(self.parallel_apply(replicas, shares, named), self.output_device)

    def replicate(self, module, device_ids):
        return replicate(module, device_ids, not torch.is_grad_enabled())

    def scatter(self, inputs, kwargs, device_ids):
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs, output_device):
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Runs a module once as `DataParallel` would.

    Shape: `inputs` (a tensor or a tuple) is cut along `dim`, the result joined along it.

    Raises: RuntimeError where parameters or buffers lie on another device than the first.

    Example:
        >>> torch.nn.parallel.data_parallel(torch.nn.Linear(4, 2), torch.ones(3, 4), device_ids=[]).shape
        torch.Size([3, 2])
    """
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
