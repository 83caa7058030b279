"""What describes a spread tensor: mesh, placements, and the shape, strides and dtype of the whole."""

from typing import NamedTuple

import rushlight as torch
from rushlight.distributed.tensor.placement_types import Replicate, Shard, _StridedShard

__all__ = ["DTensorSpec", "ShardOrderEntry", "TensorMeta"]


class TensorMeta(NamedTuple):
    """Shape, strides and dtype of the whole tensor."""

    shape: torch.Size
    stride: tuple
    dtype: torch.dtype


class ShardOrderEntry(NamedTuple):
    """Which dimensions of the mesh cut a dimension of the tensor, in this order."""

    tensor_dim: int
    mesh_dims: tuple


class DTensorSpec:
    """Where the parts of a tensor are.

    Args:
        mesh: the processes.
        placements: one for each dimension of the mesh.
        tensor_meta: the whole tensor's.
    """

    __slots__ = ("_hash", "mesh", "placements", "tensor_meta")

    def __init__(self, mesh, placements, tensor_meta=None):
        self._set(mesh, placements, tensor_meta)

    def _set(self, mesh, placements, tensor_meta):
        self.mesh, self.placements, self.tensor_meta = mesh, tuple(placements), tensor_meta
        self._hash = None

    @property
    def shard_order(self):
        """A ShardOrderEntry for each dimension of the tensor that is cut."""
        cuts = {}
        for i in shard_order(self.placements):
            cuts.setdefault(self.placements[i].dim, []).append(i)
        return tuple(ShardOrderEntry(dim, tuple(cuts[dim])) for dim in sorted(cuts))

    def __getstate__(self):
        return {
            "mesh": self.mesh,
            "placements": self.placements,
            "tensor_meta": self.tensor_meta,
            "shard_order": self.shard_order,
            "use_strided_shard_as_shard_order": any(isinstance(p, _StridedShard) for p in self.placements),
            "_hash": None,
        }

    def __setstate__(self, state):
        self._set(state["mesh"], state["placements"], state["tensor_meta"])
        if state.get("shard_order", self.shard_order) != self.shard_order:
            raise NotImplementedError(
                f"the file's tensor is cut in the order {state['shard_order']}, not from left to right"
            )

    @property
    def shape(self):
        return self.tensor_meta.shape

    @property
    def stride(self):
        return self.tensor_meta.stride

    @property
    def dtype(self):
        return self.tensor_meta.dtype

    @property
    def ndim(self):
        return len(self.tensor_meta.shape)

    @property
    def device_mesh(self):
        return self.mesh

    @property
    def num_shards(self):
        count = 1
        for size, placement in zip(self.mesh.shape, self.placements):
            count *= size if placement.is_shard() else 1
        return count

    @property
    def dim_map(self):
        """For each dimension of the tensor, which dimension of the mesh shards it; -1 for none."""
        found = [-1] * self.ndim
        for i, placement in enumerate(self.placements):
            if placement.is_shard():
                found[placement.dim] = i
        return found

    def is_replicated(self):
        return all(isinstance(p, Replicate) for p in self.placements)

    def is_sharded(self):
        return any(isinstance(p, Shard) for p in self.placements)

    def _key(self):
        return (self.mesh, self.placements, self.tensor_meta)

    def __eq__(self, other):
        return isinstance(other, DTensorSpec) and self._key() == other._key()

    def __hash__(self):
        if self._hash is None:
            self._hash = hash(self._key())
        return self._hash

    def __repr__(self):
        shape = tuple(self.shape) if self.tensor_meta is not None else "unknown shape"
        return f"Spec({''.join(map(str, self.placements))} on {shape} over {self.mesh})"


def meta_of(tensor):
    """The TensorMeta of a tensor."""
    return TensorMeta(torch.Size(tensor.shape), tuple(tensor.stride()), tensor.dtype)


def contiguous_stride(shape):
    """The strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def shard_order(placements):
    """The mesh dimensions that shard, as they cut: left to right, those that cut within others' parts
    last."""
    plain = [i for i, p in enumerate(placements) if p.is_shard() and not isinstance(p, _StridedShard)]
    return plain + [i for i, p in enumerate(placements) if isinstance(p, _StridedShard)]


def local_shape_and_offset(shape, mesh, placements, coordinate=None, upto=None):
    """The shape of a process's part, and where it begins.

    Only the cuts before mesh dimension `upto` count when it is given.
    """
    shape, offset = list(shape), [0] * len(shape)
    coordinate = mesh.get_coordinate() if coordinate is None else coordinate
    if coordinate is None:
        return [0] * len(shape), offset
    for i in shard_order(placements):
        if i == upto:
            break
        dim = placements[i].dim
        shape[dim], start = Shard.local_shard_size_and_offset(shape[dim], mesh.size(i), coordinate[i])
        offset[dim] += start
    return shape, offset


def normalized(placements, ndim, mesh, what):
    """Placements as a tuple, one for each dimension of the mesh, with dimensions counted from the left."""
    placements = tuple(placements)
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(placements)}, and device_mesh.ndim: {mesh.ndim}. ({what})"
        )
    fixed = []
    for placement in placements:
        if placement.is_shard():
            if not -ndim <= placement.dim < max(ndim, 0):
                raise RuntimeError(
                    f"{what}: {placement!r} is out of range for a tensor with {ndim} dimensions"
                )
            if placement.dim < 0:
                dim = placement.dim + ndim
                strided = isinstance(placement, _StridedShard)
                placement = _StridedShard(dim, split_factor=placement.split_factor) if strided else Shard(dim)
        fixed.append(placement)
    return tuple(fixed)
