"""Which box of a tensor a process holds, and what two boxes have in common."""

from ... import Size, Tensor
from .metadata import ChunkStorageMetadata


def chunk_of(tensor):
    """This process's box, and its values; None where it holds nothing of its own."""
    if hasattr(tensor, "placements"):
        from ..tensor._dtensor_spec import local_shape_and_offset

        spec = tensor._spec
        if any(p.is_partial() for p in spec.placements):
            raise ValueError(f"a sum that is not reduced cannot be saved or loaded: {spec.placements}")
        shape, offset = local_shape_and_offset(spec.shape, spec.mesh, spec.placements)
        if spec.mesh.get_coordinate() is None or (0 in shape and 0 not in tensor.shape):
            return None, tensor._local_tensor
        return ChunkStorageMetadata(Size(offset), Size(shape)), tensor._local_tensor
    return ChunkStorageMetadata(Size([0] * tensor.dim()), Size(tensor.shape)), tensor.detach()


def overlap(a, b):
    """[(dimension, where in a, where in b, how long)] of what two boxes share; None if nothing."""
    found = []
    for dim, (start, size, other, other_size) in enumerate(zip(a.offsets, a.sizes, b.offsets, b.sizes)):
        first, end = max(start, other), min(start + size, other + other_size)
        if end <= first:
            return None
        found.append((dim, first - start, first - other, end - first))
    return found


def is_tensor(value):
    return isinstance(value, Tensor)
