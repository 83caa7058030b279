"""Ranks laid out as an array, with a process group along each dimension."""

from __future__ import annotations

import math
import threading
from typing import Any

from .. import Tensor, arange, int32
from .. import tensor as make_tensor
from ._initialize import get_rank, get_world_size, init_process_group, is_initialized, new_group
from ._mesh_layout import layout_of, ranks_of
from ._process_group import _get_default_group, _rank_not_in_group, _world

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.distributed._process_group import ProcessGroup

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """An n-dimensional arrangement of ranks, used as `mesh["dp"]`, `mesh.get_group("tp")`.

    Args:
        device_type: "cpu".
        mesh: array of global ranks, a tensor or nested lists.
        mesh_dim_names: a name for each dimension.

    Every process of the job makes the same mesh. Raises ValueError for names that do not fit.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        backend_override: Any = None,
        _init_backend: bool = True,
        _rank: int | None = None,
    ) -> None:
        self.device_type = device_type
        with _outside_of_modes():
            self.mesh = (mesh.detach() if isinstance(mesh, Tensor) else make_tensor(mesh)).to(int32)
        if mesh_dim_names is not None and len(mesh_dim_names) != self.mesh.dim():
            raise ValueError(f"DeviceMesh: {self.mesh.dim()} dimensions, but the names {mesh_dim_names}")
        self.mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        self._groups, self._flattened, self._merged = [], {}, ()
        self._coordinate: Any = ()  # not looked up yet
        self._parent: Any = None
        if _init_backend:
            if not is_initialized():
                init_process_group()
            self._groups = [self._make_groups(dim) for dim in range(self.mesh.dim())]
        self._own_rank = get_rank() if _rank is None else _rank

    def _make_groups(self, dim):
        """Groups of the ranks that differ along one dimension only; returns the one with this process."""
        if self.mesh.dim() == 1 and self.mesh.numel() == get_world_size():
            return _get_default_group()
        mine = None
        name = self.mesh_dim_names[dim] if self.mesh_dim_names else f"dim_{dim}"
        for ranks in self.mesh.movedim(dim, -1).reshape(-1, self.mesh.shape[dim]).tolist():
            made = new_group(ranks, group_desc=f"mesh_{name}")
            if not _rank_not_in_group(made):
                mine = made
        return mine

    @classmethod
    def from_group(
        cls,
        group: ProcessGroup | list[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> DeviceMesh:
        """A mesh over groups that exist: one group, or one per dimension together with the mesh."""
        groups = group if isinstance(group, list) else [group]
        if mesh is None:
            if len(groups) != 1:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            mesh = groups[0]._ranks
        made = cls(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if not isinstance(group, list) and made.mesh.tolist() != groups[0]._ranks:
            raise ValueError(
                f"Invalid mesh {made.mesh.tolist()} for ProcessGroup with ranks {groups[0]._ranks}"
            )
        if made.mesh.dim() != len(groups):
            raise ValueError(
                "Expects mesh with ndim equal to number of ProcessGroups but got mesh "
                f"{made.mesh.tolist()} and {len(groups)} ProcessGroups"
            )
        made._groups = groups
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.mesh.shape)

    @property
    def ndim(self) -> int:
        return self.mesh.dim()

    def size(self, mesh_dim: int | None = None) -> int:
        """Number of ranks, of the mesh or along a dimension."""
        return self.mesh.numel() if mesh_dim is None else self.mesh.shape[self._dim(mesh_dim)]

    def _dim(self, mesh_dim):
        if not isinstance(mesh_dim, str):
            return mesh_dim
        if not self.mesh_dim_names or mesh_dim not in self.mesh_dim_names:
            raise KeyError(f"Invalid mesh_dim_name {mesh_dim!r}. The mesh has {self.mesh_dim_names}")
        return self.mesh_dim_names.index(mesh_dim)

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The process group of this rank along a dimension, which may be left out of 1-d meshes."""
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be "
                "specified when device_mesh.ndim > 1."
            )
        if mesh_dim in self._flattened:
            return self._flattened[mesh_dim].get_group()
        dim = self._dim(mesh_dim or 0)
        if not self._groups:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return self._groups[dim]

    def get_all_groups(self) -> list[ProcessGroup]:
        return list(self._groups)

    def get_rank(self) -> int:
        """The global rank."""
        return self._own_rank

    def get_coordinate(self) -> list[int] | None:
        """Where this rank stands, or None when it is not in the mesh."""
        if self._coordinate == ():
            with _outside_of_modes():
                found = (self.mesh == self._own_rank).nonzero().tolist()
            self._coordinate = found[0] if found else None
        return None if self._coordinate is None else list(self._coordinate)

    def get_local_rank(self, mesh_dim=None):
        """This rank's position along a dimension."""
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be "
                "specified when device_mesh.ndim > 1."
            )
        return self.get_coordinate()[self._dim(mesh_dim or 0)]

    def __getitem__(self, names):
        """The mesh along the named dimensions through this rank; names that `_flatten` gave count as well."""
        names = (names,) if isinstance(names, str) else tuple(names)
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        if len(names) == 1 and names[0] in self._flattened:
            return self._flattened[names[0]]
        merged = [self._dims_behind(name) for name in names]
        if names == self.mesh_dim_names:
            return self
        dims = [d for several in merged for d in several]
        coordinate = self.get_coordinate() or [0] * self.ndim
        index = tuple(slice(None) if d in dims else coordinate[d] for d in range(self.ndim))
        order = sorted(dims)
        with _outside_of_modes():
            part = self.mesh[index].permute([order.index(d) for d in dims])
            part = part.reshape([math.prod(self.shape[d] for d in several) for several in merged])
            made = DeviceMesh(
                self.device_type, part, mesh_dim_names=names, _init_backend=False, _rank=self._own_rank
            )
        made._groups = [self.get_group(name) for name in names] if self._groups else []
        made._parent = self
        return made

    def _dims_behind(self, name):
        """The dimensions that a name stands for."""
        if name in self._flattened:
            return [self._dim(merged) for merged in self._flattened[name]._merged]
        return [self._dim(name)]

    def _flatten(self, mesh_dim_name=None):
        """The 1-d mesh of all ranks of this one; the parent finds it by its name."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ["flat"])
        root = self._get_root_mesh()
        if name not in root._flattened:
            made = DeviceMesh(
                self.device_type,
                self.mesh.flatten(),
                mesh_dim_names=(name,),
                _init_backend=False,
                _rank=self._own_rank,
            )
            # All ranks make all groups: one for each copy of this part in the whole mesh.
            others = [d for d in range(root.ndim) if not self._has_root_dim(root, d)]
            mine = [d for d in range(root.ndim) if d not in others]
            count = math.prod(root.mesh.shape[d] for d in mine)
            for ranks in root.mesh.permute(others + mine).reshape(-1, count).tolist():
                group = new_group(ranks, group_desc=f"mesh_{name}")
                if not _rank_not_in_group(group):
                    made._groups = [group]
            made._parent, made._merged = root, self.mesh_dim_names or ()
            root._flattened[name] = made
        return root._flattened[name]

    def _has_root_dim(self, root, dim):
        return not root.mesh_dim_names or root.mesh_dim_names[dim] in (self.mesh_dim_names or ())

    def _get_root_mesh(self):
        return self if self._parent is None else self._parent._get_root_mesh()

    def __enter__(self) -> DeviceMesh:
        _stack().append(self)
        return self

    def __exit__(self, *_) -> None:
        _stack().pop()

    def __deepcopy__(self, memo):
        return self

    def __getstate__(self):
        """What PyTorch's has in files, so that each reads the other's."""
        root = self._get_root_mesh()
        ranks = root.mesh.flatten().tolist()
        layout = layout_of(self.mesh, ranks)
        if layout is None:
            root, ranks = self, self.mesh.flatten().tolist()
            layout = layout_of(self.mesh, ranks)
        coordinate = self.get_coordinate()
        return {
            "_device_type": self.device_type,
            "_layout": layout,
            "_rank_map": root.mesh.flatten(),
            "_mesh_dim_names": self.mesh_dim_names,
            "_root_mesh": None if root is self else root,
            "_flatten_rank_map": tuple(ranks),
            "_thread_id": None,
            "_flatten_mapping": {},
            "_dim_group_names": [group.group_name for group in self._groups if group is not None],
            "_rank": self._own_rank,
            "_coordinate_on_dim": None if coordinate is None else tuple(coordinate),
            "_hash": None,
        }

    def __setstate__(self, state):
        """The mesh over groups that exist here; without groups where there are none."""
        vars(self).update(_parent=None, _groups=[], _flattened={}, _merged=(), _coordinate=())
        self._own_rank = state.get("_rank") or 0
        if is_initialized():
            self._own_rank = get_rank()
        if "mesh" in state:  # a file of an earlier version
            vars(self).update(state)
        else:
            layout, ranks = state["_layout"], list(state["_flatten_rank_map"])
            shape = [math.prod(axis.shape) for axis in layout.axes]
            self.device_type, self.mesh_dim_names = state["_device_type"], state["_mesh_dim_names"]
            self.mesh = make_tensor(ranks_of(layout, ranks, self._own_rank), dtype=int32).view(shape)
            self._parent = state["_root_mesh"]
        if not is_initialized():
            return
        for dim in range(self.mesh.dim()):
            lines = self.mesh.movedim(dim, -1).reshape(-1, self.mesh.shape[dim]).tolist()
            mine = next((ranks for ranks in lines if self._own_rank in ranks), None)
            groups = [] if mine is None else [g for g in _world.groups.values() if g._ranks == mine]
            self._groups.append(groups[0] if groups else None)

    def _identity(self):
        if "_key" not in vars(self):
            self._key = (
                self.device_type,
                tuple(self.mesh.shape),
                tuple(self.mesh.flatten().tolist()),
                self.mesh_dim_names,
            )
        return self._key

    def __eq__(self, other) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._identity() == other._identity())

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        if self.mesh_dim_names:
            dims = ", ".join(f"{name}={size}" for name, size in zip(self.mesh_dim_names, self.shape))
            return f"DeviceMesh(({dims}), '{self.device_type}', stride={tuple(self.mesh.stride())})"
        return f"DeviceMesh({self.shape}, '{self.device_type}', stride={tuple(self.mesh.stride())})"


def _outside_of_modes():
    """Ranks are real numbers also where modes make tensors fake."""
    from ..utils._python_dispatch import _disable_current_modes

    return _disable_current_modes()


_entered = threading.local()


def _stack():
    if not hasattr(_entered, "meshes"):
        _entered.meshes = []
    return _entered.meshes


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """All ranks of the job as an array of this shape, in order.

    Args:
        device_type: "cpu".
        mesh_shape: sizes; their product is the number of processes.
        mesh_dim_names: names of the dimensions, each once.

    Raises RuntimeError for names that do not fit or come twice, and for a shape of another size.
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in {mesh_dim_names}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): "
                f"{len(mesh_dim_names)} and len(mesh_shape): {len(mesh_shape)}"
            )
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. Use its name alone"
        )
    if not is_initialized():
        init_process_group()
    count = math.prod(mesh_shape)
    if count != get_world_size():
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {get_world_size()}, but found {count} ranks!"
        )
    return DeviceMesh(device_type, arange(count).view(mesh_shape), mesh_dim_names=mesh_dim_names)
