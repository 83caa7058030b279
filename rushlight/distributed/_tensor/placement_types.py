"""The former home of `torch.distributed.tensor.placement_types`."""

from rushlight.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensorSpec", "Partial", "Placement", "Replicate", "Shard", "TensorMeta"]
