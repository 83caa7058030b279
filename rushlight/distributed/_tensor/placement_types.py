"""The former home of `torch.distributed.tensor.placement_types`."""

from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
