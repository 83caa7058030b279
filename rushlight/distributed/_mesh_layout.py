"""How files describe a mesh, as PyTorch's do: sizes and strides in the array of the whole mesh's ranks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight import Tensor

__all__ = ["layout_of", "ranks_of"]


@dataclass(frozen=True)
class _FlatLayout:
    """One dimension of a mesh. It steps through several dimensions of the whole, or none for one rank."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]

    def steps(self):
        """The offset of each position."""
        ranges = [range(0, n * step, step) if step else [0] * n for n, step in zip(self.shape, self.stride)]
        return [sum(parts) for parts in product(*ranges)]

    def offset_of(self, position):
        """The part of a position in the whole that this dimension makes up."""
        return sum(position // step % n * step for n, step in zip(self.shape, self.stride) if n > 1)


@dataclass(frozen=True)
class _MeshLayout:
    """The dimensions of a mesh."""

    axes: tuple[_FlatLayout, ...]


def layout_of(mesh: Tensor, root: list[int]):
    """The layout of a mesh in the ranks of the mesh it was cut from; None if no strides describe it."""
    where = {rank: position for position, rank in enumerate(root)}
    if any(rank not in where for rank in mesh.flatten().tolist()):
        return None
    axes = []
    for dim, size in enumerate(mesh.shape):
        line = [where[rank] for rank in mesh.movedim(dim, -1).reshape(-1, size)[0].tolist()]
        step = line[1] - line[0] if size > 1 else 0
        if step < 0 or line != [line[0] + i * step for i in range(size)]:
            return None
        axes.append(_FlatLayout((size,), (step,)) if size > 1 else _FlatLayout((), ()))
    return _MeshLayout(tuple(axes))


def ranks_of(layout: _MeshLayout, root: list[int], rank: int):
    """The ranks of the mesh of this layout that `rank` is in, in order; of the first one if it is in none."""
    position = root.index(rank) if rank in root else 0
    first = position - sum(axis.offset_of(position) for axis in layout.axes)
    return [root[first + sum(parts)] for parts in product(*(axis.steps() for axis in layout.axes))]
