"""How a dimension of a mesh of processes holds a tensor: its parts, copies of it, or terms of a sum."""

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """The base of all placements."""

    def is_shard(self, dim=None):
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self):
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None):
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process holds a part along a dimension of the tensor."""

    dim: int

    def __repr__(self):
        return f"Shard(dim={self.dim})"

    def __str__(self):
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process holds all of the tensor."""

    def __repr__(self):
        return "Replicate()"

    def __str__(self):
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each process holds a term; `reduce_op` of all terms is the tensor."""

    reduce_op: str = "sum"

    def __repr__(self):
        return f"Partial({self.reduce_op})"

    def __str__(self):
        return f"P({self.reduce_op})"


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Parts of a dimension that a mesh dimension further right had split into `split_factor` before."""

    split_factor: int = 1

    def __repr__(self):
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"
