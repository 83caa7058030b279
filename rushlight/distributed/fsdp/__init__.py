"""Parameters sharded over processes: the policies, and the case of one process, which shards nothing."""

from dataclasses import dataclass

import rushlight as torch
from rushlight import distributed
from rushlight.distributed.fsdp.fully_sharded_data_parallel import (
    BackwardPrefetch,
    CPUOffload,
    FullyShardedDataParallel,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "CPUOffloadPolicy",
    "FSDPModule",
    "FullyShardedDataParallel",
    "MixedPrecision",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "ShardingStrategy",
    "StateDictType",
    "fully_shard",
]


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
    """Keeps parameters in the CPU's memory."""

    pin_memory: bool = True


class FSDPModule:
    """The base that `fully_shard` gives to modules whose parameters are sharded."""


def fully_shard(module, *, mesh=None, **options):
    """Shard a module's parameters over the processes of a mesh; over one process they stay whole."""
    size = mesh.size() if mesh is not None else distributed.get_world_size()
    if size > 1:
        raise NotImplementedError(
            f"fully_shard: sharding over {size} processes is not here yet; use DistributedDataParallel"
        )
    return module
