"""Tensors spread over processes. There are no process groups here, so no tensor is one: the class and the
placements serve `isinstance` and annotations."""

from rushlight import Tensor
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard"]


class DTensor(Tensor):
    """A tensor spread over a mesh of processes."""

    def __new__(cls, *args, **kwargs):
        raise RuntimeError("DTensor: there are no process groups in this build to spread a tensor over")
