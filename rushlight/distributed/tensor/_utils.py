"""Which part of a spread tensor a process holds."""

__all__ = ["compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(global_shape, mesh, placements):
    """The shape of this process's part, and where it begins; the last parts may be smaller."""
    shape, offset = list(global_shape), [0] * len(global_shape)
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return (0,), ()
    for mesh_dim, placement in enumerate(placements):
        if not placement.is_shard():
            continue
        dim = placement.dim
        parts = mesh.size(mesh_dim)
        step = -(-shape[dim] // parts)
        start = min(coordinate[mesh_dim] * step, shape[dim])
        offset[dim] += start
        shape[dim] = min(step, shape[dim] - start)
    return tuple(shape), tuple(offset)
