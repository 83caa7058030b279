"""How a dimension of a mesh of processes holds a tensor: its parts, copies of it, or terms of a sum."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight import Tensor

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """The base of all placements."""

    def is_shard(self, dim: Any = None) -> bool:
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True, eq=False)
class Shard(Placement):
    """Each process holds a part along a dimension of the tensor.

    Parts are as `torch.chunk` cuts them: all of ceil(size / processes) rows, but the last ones, which may be
    smaller or empty.
    """

    dim: int

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"

    def __eq__(self, other) -> bool:
        return isinstance(other, Shard) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self):
        return (self.dim, None)

    @staticmethod
    def local_shard_size_and_offset(curr_local_size, num_chunks, rank: int):
        """How many rows a rank holds of so many, and where they begin."""
        step = -(-curr_local_size // num_chunks)
        start = min(step * rank, curr_local_size)
        return min(step, curr_local_size - start), start

    _local_shard_size_and_offset = local_shard_size_and_offset

    def _split_tensor(self, tensor, num_chunks, *, with_padding=True, contiguous=True):
        """The parts of all processes, made equally long with zeros if asked; and by how much each was."""
        size = tensor.shape[self.dim]
        step = -(-size // num_chunks)
        parts, pads = [], []
        for rank in range(num_chunks):
            length, start = self.local_shard_size_and_offset(size, num_chunks, rank)
            part = tensor.narrow(self.dim, start, length)
            pads.append(step - length)
            part = pad_dim(part, self.dim, step - length) if with_padding else part
            parts.append(part.contiguous() if contiguous else part)
        return parts, pads


def pad_dim(tensor: Tensor, dim: Any, rows):
    """The tensor with zeros appended along a dimension."""
    if not rows:
        return tensor
    shape = list(tensor.shape)
    shape[dim] += rows
    padded = tensor.new_zeros(shape)
    padded.narrow(dim, 0, tensor.shape[dim]).copy_(tensor)
    return padded


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process holds all of the tensor."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each process holds a term; `reduce_op` of all terms is the tensor."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"

    def _before(self, tensor):
        """What is reduced for a term."""
        return tensor

    def _after(self, tensor):
        """The value for what was reduced."""
        return tensor


@dataclass(frozen=True)
class _NormPartial(Partial):
    """Each process holds the norm of its part; together they give the norm of all."""

    reduce_op: str = "sum"
    norm_type: float = 2

    def __init__(self, norm_type=2):
        norm = float(norm_type)
        how = {float("inf"): "max", float("-inf"): "min"}.get(norm, "sum")
        object.__setattr__(self, "reduce_op", how)
        object.__setattr__(self, "norm_type", norm_type)

    def _before(self, tensor):
        return tensor if self.reduce_op != "sum" or self.norm_type in (0, 1) else tensor**self.norm_type

    def _after(self, tensor):
        if self.reduce_op != "sum" or self.norm_type in (0, 1):
            return tensor
        return tensor ** (1 / self.norm_type)

    def __repr__(self):
        return f"_NormPartial({self.norm_type})"

    def __str__(self):
        return f"_NormP({self.norm_type})"


@dataclass(frozen=True, eq=False)
class _StridedShard(Shard):
    """Parts of a dimension that a mesh dimension further right had split into `split_factor` before."""

    split_factor: int = 1

    def __init__(self, dim, *, split_factor=1, sf=None):
        if sf is not None and split_factor != 1:
            raise TypeError("_StridedShard received both split_factor and sf")
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "split_factor", split_factor if sf is None else sf)

    def _key(self):
        return (self.dim, self.split_factor)

    def __repr__(self):
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self):
        return f"_S({self.dim}, {self.split_factor})"


_Partial = Partial
