"""Tensors spread over processes: placements, and the class for `isinstance`. Spreading is not here yet."""

from rushlight import Tensor
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_tensor"]


class DTensor(Tensor):
    """A tensor spread over a mesh of processes."""

    def __new__(cls, *args, **kwargs):
        raise NotImplementedError("DTensor: tensors cannot be spread over processes yet; see docs/status.md")


def distribute_tensor(tensor, device_mesh=None, placements=None, *, src_data_rank=0):
    """Spread a tensor that is whole in each process."""
    return DTensor(tensor, device_mesh, placements)
