"""One sharded parameter: its part at rest, and the whole while the module computes.

The whole is one tensor for good, whose memory comes and goes. So what autograd saved of it in the forward
pass
is there again in the backward pass, after the parts were gathered anew.
"""

import ctypes
from typing import Any

import rushlight as torch
from rushlight.distributed.tensor._api import DTensor
from rushlight.distributed.tensor._dtensor_spec import DTensorSpec, meta_of
from rushlight.distributed.tensor.placement_types import Replicate, Shard, _StridedShard, pad_dim

__all__ = ["FSDPParam"]


class FSDPParam:
    """A parameter of one module, or of several that share it.

    Args:
        parameter: the whole parameter; a DTensor on another dimension of the mesh for tensor parallelism.
        places: (module, name) where it is.
        mesh: 1-d, or 2-d: copies along the first, parts along the second dimension.
        placement: how it is cut, Shard(0) if None.
        policy: the MixedPrecisionPolicy.
    """

    def __init__(self, parameter, places, mesh, placement, policy):
        self.places, self.mesh, self.policy = places, mesh, policy
        self.requires_grad = parameter.requires_grad
        self.shard_group = mesh.get_group(mesh.ndim - 1)
        self.ranks, self.rank = self.shard_group.size(), self.shard_group.rank()
        self.tensor_spec = parameter._spec if isinstance(parameter, DTensor) else None
        whole = parameter._local_tensor if self.tensor_spec else parameter.detach()
        self.dim = (placement.dim if placement is not None else 0) % max(whole.dim(), 1)
        if whole.dim() == 0:
            raise ValueError("fully_shard doesn't support scalar parameters. Change the parameter to 1D")
        self.shape, self.dtype = whole.shape, whole.dtype
        self.step = -(-self.shape[self.dim] // self.ranks)
        self.rows, self.start = Shard.local_shard_size_and_offset(self.shape[self.dim], self.ranks, self.rank)
        self.spec = self._spec_of(parameter)
        part = whole.narrow(self.dim, self.start, self.rows).clone(memory_format=torch.contiguous_format)
        self.sharded = self._parameter(DTensor(part, self.spec, requires_grad=False), parameter)
        self.unsharded: Any = None
        self.whole: Any = None  # the tensor behind `unsharded`
        self.show_sharded()

    def _spec_of(self, parameter):
        shard = Shard(self.dim)
        if self.tensor_spec is None:
            placements = [Replicate()] * (self.mesh.ndim - 1) + [shard]
            return DTensorSpec(self.mesh, placements, meta_of(parameter))
        other = self.tensor_spec
        root = self.mesh._get_root_mesh()
        names = (self.mesh.mesh_dim_names or ()) + (other.mesh.mesh_dim_names or ())
        if root is not other.mesh._get_root_mesh() or len(names) != self.mesh.ndim + other.mesh.ndim:
            raise ValueError(
                "fully_shard: a parameter that is a DTensor needs a mesh that is part of one with its "
                "own, with "
                f"names, as mesh['dp'] and mesh['tp']; got {self.mesh} and {other.mesh}"
            )
        factor = 1
        for size, placement in zip(other.mesh.shape, other.placements):
            factor *= size if placement.is_shard(self.dim) else 1
        shard = _StridedShard(self.dim, split_factor=factor) if factor > 1 else shard
        placements = [Replicate()] * (self.mesh.ndim - 1) + [shard, *other.placements]
        return DTensorSpec(root[names], placements, other.tensor_meta)

    def _parameter(self, tensor, like):
        made = torch.nn.Parameter(tensor, requires_grad=self.requires_grad)
        if made is not like and hasattr(like, "__dict__"):
            for name, value in vars(like).items():
                if name not in ("_local_tensor", "_spec"):
                    setattr(made, name, value)
        return made

    # --- what the modules see

    def _show(self, parameter):
        for module, name in self.places:
            if type(module).__setattr__ is torch.nn.Module.__setattr__:
                module._parameters[name] = parameter
            else:
                setattr(module, name, parameter)

    def show_sharded(self):
        self._show(self.sharded)

    def show_unsharded(self):
        self._show(self.unsharded)

    def adopt(self):
        """Take what a program put in the sharded parameter's place: `to_empty()`,
        `load_state_dict(assign=True)`."""
        module, name = self.places[0]
        found = module._parameters[name]
        if found is self.sharded or found is self.unsharded:
            local = self.sharded._local_tensor
        elif isinstance(found, DTensor):
            self.sharded, local = found, found._local_tensor
            self._show(found)
        else:
            raise RuntimeError(
                f"fully_shard: the parameter {name} of {type(module).__name__} was replaced by a "
                f"{type(found)}; "
                "put a DTensor with the same placements in its place"
            )
        if local.dtype != self.dtype:
            self.dtype, self.unsharded = local.dtype, None
        return local

    # --- the whole

    @property
    def compute_dtype(self):
        wanted = self.policy.param_dtype
        return wanted if wanted is not None and self.dtype.is_floating_point else self.dtype

    def padded_part(self):
        """This rank's part as it is gathered: as long as everybody's, in the dtype of the computation."""
        part = self.sharded._local_tensor.to(self.compute_dtype)
        return pad_dim(part, self.dim, self.step - self.rows).reshape(-1)

    @property
    def part_numel(self):
        rest = self.shape.numel() // self.shape[self.dim] if self.shape[self.dim] else 0
        return self.step * rest

    def _allocate(self):
        if self.unsharded is None or self.whole.dtype != self.compute_dtype:
            self.whole = torch.empty(self.shape, dtype=self.compute_dtype)
            tensor = self.whole
            if self.tensor_spec is not None:
                spec = self.tensor_spec
                meta = spec.tensor_meta._replace(dtype=tensor.dtype)
                tensor = DTensor(tensor, DTensorSpec(spec.mesh, spec.placements, meta), requires_grad=False)
            self.unsharded = self._parameter(tensor, self.sharded)
        else:
            self.whole.untyped_storage().resize_(self.shape.numel() * self.whole.element_size())
        self.unsharded.requires_grad_(self.sharded.requires_grad)

    def fill(self, parts):
        """Write the whole from the ranks' parts (1-d tensors), and show it to the modules."""
        self._allocate()
        if self.dim == 0:
            self._copy_rows(parts)
        else:
            shape = list(self.shape)
            shape[self.dim] = self.step
            together = torch.cat([part.view(shape) for part in parts], self.dim)
            _write(self.whole, together.narrow(self.dim, 0, self.shape[self.dim]).contiguous(), 0)
        self.show_unsharded()

    def _copy_rows(self, parts):
        rest = self.shape.numel() // self.shape[0] if self.shape[0] else 0
        for rank, part in enumerate(parts):
            rows, start = Shard.local_shard_size_and_offset(self.shape[0], self.ranks, rank)
            _write(self.whole, part.narrow(0, 0, rows * rest), start * rest)

    def free(self):
        """Give the whole's memory back; the modules have the part again."""
        if self.whole is not None:
            self.whole.untyped_storage().resize_(0)
        self.show_sharded()

    # --- gradients

    def take_gradient(self):
        """The whole gradient of this rank, out of the parameter; None when there is none."""
        if self.unsharded is None or self.unsharded.grad is None:
            return None
        gradient, self.unsharded.grad = self.unsharded.grad, None
        if isinstance(gradient, DTensor):
            placements = self.tensor_spec.placements
            if gradient.placements != placements:
                gradient = gradient.redistribute(placements=placements)
            gradient = gradient._local_tensor
        return gradient

    def padded_gradient(self, gradient, dtype):
        """A row for each rank: its part of a whole gradient."""
        gradient = pad_dim(gradient.to(dtype), self.dim, self.step * self.ranks - self.shape[self.dim])
        if self.dim:
            gradient = torch.cat(gradient.chunk(self.ranks, self.dim))
        return gradient.reshape(self.ranks, -1)

    def add_gradient(self, flat):
        """Add this rank's reduced part to the sharded parameter's gradient."""
        shape = list(self.shape)
        shape[self.dim] = self.step
        part = flat.view(shape).narrow(self.dim, 0, self.rows).to(self.dtype)
        if self.sharded.grad is not None:
            self.sharded.grad._local_tensor.add_(part)
            return
        part = part.clone(memory_format=torch.contiguous_format)
        meta = self.spec.tensor_meta._replace(dtype=part.dtype)
        spec = DTensorSpec(self.spec.mesh, self.spec.placements, meta)
        self.sharded.grad = DTensor(part, spec, requires_grad=False)


def _write(target, source, start):
    """Copy memory without autograd's notice: the values are those that were there before."""
    size = source.element_size()
    if source.numel():
        ctypes.memmove(target.data_ptr() + start * size, source.data_ptr(), source.numel() * size)
