"""What `fully_shard` may be told."""

from dataclasses import dataclass

import rushlight as torch
from rushlight._command.names import show_public_from

__all__ = ["CPUOffloadPolicy", "DataParallelMeshDims", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of parameters in the forward pass, of gradients while they are reduced, and of results."""

    param_dtype: torch.dtype | None = None
    reduce_dtype: torch.dtype | None = None
    output_dtype: torch.dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Keeps parameters where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Keeps parameters in the CPU's memory, which is where those of here are."""

    pin_memory: bool = True


@dataclass(frozen=True)
class DataParallelMeshDims:
    """The names of the mesh dimensions over which data is spread: those that shard, and those that
    replicate."""

    shard: str | tuple | None = None
    replicate: str | tuple | None = None


show_public_from("distributed.fsdp", globals())
