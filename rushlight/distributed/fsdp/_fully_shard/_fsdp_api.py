"""PyTorch's place for what `fully_shard` may be told."""

from rushlight.distributed.fsdp._communication import AllGather, Comm, ReduceScatter
from rushlight.distributed.fsdp._policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = ["AllGather", "CPUOffloadPolicy", "Comm", "MixedPrecisionPolicy", "OffloadPolicy", "ReduceScatter"]
