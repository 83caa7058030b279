"""Which part of a spread tensor a process holds."""

from rushlight.distributed.tensor._dtensor_spec import local_shape_and_offset

__all__ = ["compute_global_tensor_info", "compute_local_shape", "compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(global_shape, mesh, placements):
    """The shape of this process's part, and where it begins; the last parts may be smaller."""
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return (0,), ()
    shape, offset = local_shape_and_offset(global_shape, mesh, placements, coordinate)
    return tuple(shape), tuple(offset)


def compute_local_shape(global_shape, mesh, placements):
    """The shape of this process's part."""
    return compute_local_shape_and_global_offset(global_shape, mesh, placements)[0]


def compute_global_tensor_info(tensor, mesh, placements):
    """Shape and strides of the whole, if all parts are like this one."""
    from rushlight.distributed.tensor._api import _whole_shape

    shape, strides = _whole_shape(tensor, mesh, placements)
    return list(shape), list(strides)
