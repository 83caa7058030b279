"""What files of spread tensors name: `torch.load` finds these classes without the user's leave."""

from rushlight.distributed._mesh_layout import _FlatLayout, _MeshLayout
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor._api import DTensor
from rushlight.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta
from rushlight.distributed.tensor.placement_types import Partial, Replicate, Shard, _StridedShard

_CLASSES = {
    "_mesh_layout": (_FlatLayout, _MeshLayout),
    "device_mesh": (DeviceMesh,),
    "tensor": (DTensor,),
    "tensor._dtensor_spec": (DTensorSpec, ShardOrderEntry, TensorMeta),
    "tensor.placement_types": (Partial, Replicate, Shard, _StridedShard),
}

NAMED = {
    f"torch.distributed.{module}.{cls.__name__}": cls
    for module, classes in _CLASSES.items()
    for cls in classes
}
