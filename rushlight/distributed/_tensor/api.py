"""The former home of `torch.distributed.tensor`'s functions."""

from rushlight.distributed.tensor import DTensor, distribute_module, distribute_tensor

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]
