"""One module in many processes."""

import rushlight as torch
from rushlight.nn import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Runs module in every process of a group and averages its gradients. Without a group there is none."""

    def __init__(self, module, *args, process_group=None, **kwargs):
        super().__init__()
        if process_group is None and not torch.distributed.is_available():
            raise ValueError(
                "DistributedDataParallel: Default process group has not been initialized, please make sure "
                "to call init_process_group; this build has no process groups."
            )
        self.module = module
        self.process_group = process_group

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)
