"""A former home of `fully_shard`."""

from rushlight.distributed.fsdp import FSDPModule, fully_shard

__all__ = ["FSDPModule", "fully_shard"]
