"""`DTensor`: a tensor whose parts lie in the processes of a mesh, and how tensors and modules become ones."""

from __future__ import annotations

import inspect
import warnings

import rushlight as torch
from rushlight import distributed
from rushlight._command.names import show_from
from rushlight._utils import _rebuild_from_type_v2, _rebuild_wrapper_subclass
from rushlight.distributed.device_mesh import _stack
from rushlight.distributed.tensor._dtensor_spec import (
    DTensorSpec,
    TensorMeta,
    contiguous_stride,
    local_shape_and_offset,
    meta_of,
    normalized,
    shard_order,
)
from rushlight.distributed.tensor._redistribute import (
    Redistribute,
    backward_placements,
)
from rushlight.distributed.tensor.placement_types import Replicate, Shard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rushlight import Tensor, dtype
    from rushlight.distributed.device_mesh import DeviceMesh
    from rushlight.distributed.tensor.placement_types import Placement

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]


class _ToLocal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, grad_placements):
        ctx.spec = tensor._spec
        ctx.placements = grad_placements or backward_placements(tensor.placements)
        return tensor._local_tensor.view_as(tensor._local_tensor)

    @staticmethod
    def backward(ctx, gradient):
        meta = ctx.spec.tensor_meta._replace(dtype=gradient.dtype)
        spec = DTensorSpec(ctx.spec.mesh, ctx.placements, meta)
        return DTensor(gradient, spec, requires_grad=gradient.requires_grad), None


class _FromLocal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, local, spec, grad_placements):
        ctx.spec, ctx.placements = spec, grad_placements or backward_placements(spec.placements)
        return DTensor(local.view_as(local), spec, requires_grad=local.requires_grad)

    @staticmethod
    def backward(ctx, gradient):
        if gradient.placements != tuple(ctx.placements):
            gradient = Redistribute.apply(gradient, ctx.spec.mesh, tuple(ctx.placements))
        return gradient.to_local(), None, None


def _current_mesh(mesh):
    if mesh is not None:
        return mesh
    if _stack():
        return _stack()[-1]
    raise RuntimeError("No device mesh is currently active! Pass device_mesh, or enter one with `with mesh:`")


class DTensor(torch.Tensor):
    """A tensor spread over a mesh of processes; made by `distribute_tensor`, `DTensor.from_local` and the
    factory functions.

    It works like the whole tensor, in all processes of the mesh at once: each runs the operators on its part,
    after what communication the operator needs. `placements` tells how it lies, `to_local()` gives the part,
    `full_tensor()` the whole.
    """

    _local_tensor: torch.Tensor
    _spec: DTensorSpec
    _view_kind: str | None = None  # of results of view operators: "view", or "copy" where parts had to move

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, local_tensor, spec, *, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            spec.tensor_meta.shape,
            strides=spec.tensor_meta.stride,
            dtype=local_tensor.dtype,
            device=local_tensor.device,
            layout=local_tensor.layout,
            requires_grad=requires_grad,
        )
        if local_tensor.requires_grad and not requires_grad:
            warnings.warn(
                "To construct DTensor from torch.Tensor, it's recommended to use local_tensor.detach() and "
                "make requires_grad consistent.",
                stacklevel=2,
            )
        made._local_tensor = local_tensor.detach() if local_tensor.requires_grad else local_tensor
        made._spec = spec
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __repr__(self, *, tensor_contents=None):
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._spec.mesh}, "
            f"placements={self._spec.placements})"
        )

    def __tensor_flatten__(self):
        return ["_local_tensor"], (self._spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner_tensors, flatten_spec, outer_size, outer_stride):
        spec, requires_grad = flatten_spec
        local = inner_tensors["_local_tensor"]
        meta = TensorMeta(torch.Size(outer_size), tuple(outer_stride), spec.tensor_meta.dtype)
        return DTensor(local, DTensorSpec(spec.mesh, spec.placements, meta), requires_grad=requires_grad)

    def __reduce_ex__(self, protocol):
        """As PyTorch writes it, so that each reads the other's files."""
        layout = (tuple(self.shape), self.stride(), self.storage_offset(), self.layout, self.device)
        parts = {"_local_tensor": self._local_tensor, "_spec": self._spec}
        own = {name: value for name, value in vars(self).items() if name not in (*parts, "_view_kind")}
        if isinstance(self, torch.nn.Parameter):
            own["_is_param"] = True
        made = (DTensor, self.dtype, *layout, self.requires_grad)
        return _rebuild_from_type_v2, (_rebuild_wrapper_subclass, DTensor, made, (own or None, parts))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from rushlight.distributed.tensor._dispatch import dispatch

        return dispatch(func, types, args, kwargs or {})

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: Any = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """The tensor whose parts are the processes' `local_tensor`s; gradients flow back to them.

        Args:
            placements: how the parts lie; replicated when left out.
            run_check: check that shapes agree, and replace replicas by the first process's.
            shape, stride: the whole tensor's; needed when parts are of different sizes.

        Raises ValueError for a local tensor that is a DTensor, RuntimeError for placements that do not fit.
        """
        mesh = _current_mesh(device_mesh)
        if isinstance(local_tensor, DTensor):
            raise RuntimeError("the local_tensor argument only accepts torch.Tensor but got a DTensor")
        placements = [Replicate()] * mesh.ndim if placements is None else placements
        placements = normalized(placements, local_tensor.dim(), mesh, "from_local")
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}. Please pass both shape and stride at the same time."
            )
        inside = mesh.get_coordinate() is not None
        if run_check and inside:
            local_tensor = _checked(local_tensor, mesh, placements, strict=shape is None)
        if shape is None:
            shape, stride = _whole_shape(local_tensor, mesh, placements)
        if not inside:
            local_tensor = local_tensor.new_empty(0, requires_grad=local_tensor.requires_grad)
        meta = TensorMeta(torch.Size(shape), tuple(stride), local_tensor.dtype)
        return _FromLocal.apply(local_tensor, DTensorSpec(mesh, placements, meta), grad_placements)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This process's part, sharing memory; gradients flow back, laid out as `grad_placements` says."""
        if not torch.is_grad_enabled():
            return self._local_tensor
        if grad_placements is not None:
            grad_placements = normalized(grad_placements, self.dim(), self._spec.mesh, "to_local")
        return _ToLocal.apply(self, grad_placements)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: dtype | None = None,
        backward_dtype: dtype | None = None,
    ) -> DTensor:
        """The same tensor laid out as `placements` say.

        Raises RuntimeError for Partial as target, NotImplementedError for another mesh.
        """
        mesh = device_mesh or self._spec.mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        placements = normalized(placements, self.dim(), mesh, "redistribute")
        if mesh != self._spec.mesh:
            raise NotImplementedError(
                f"redistribute: from {self._spec.mesh} to another mesh, {mesh}; use full_tensor and "
                "distribute_tensor"
            )
        for held, p in zip(self.placements, placements):
            if p.is_partial() and p != held:
                raise RuntimeError(
                    f"Can not redistribute from {held} to {p}, redistributing to Partial is for internal "
                    "use only!"
                )
        return Redistribute.apply(self, mesh, placements, forward_dtype, backward_dtype)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor, in every process."""
        whole = Redistribute.apply(self, self._spec.mesh, (Replicate(),) * self._spec.mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The processes."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How the tensor lies, for each dimension of the mesh."""
        return self._spec.placements

    def __create_chunk_list__(self):
        from rushlight.distributed.checkpoint.planner_helpers import _create_chunk_from_dtensor

        return [_create_chunk_from_dtensor(self)]

    def __get_tensor_shard__(self, index):
        return self.to_local()


# The form of files of earlier versions.
def _rebuild(local, mesh, placements, shape, stride, requires_grad, is_parameter):
    spec = DTensorSpec(mesh, placements, TensorMeta(torch.Size(shape), stride, local.dtype))
    made = DTensor(local, spec, requires_grad=requires_grad)
    return torch.nn.Parameter(made, requires_grad) if is_parameter else made


def _whole_shape(local, mesh, placements):
    """The shape and strides of the whole, if all parts are like this one."""
    shape, strides = list(local.shape), list(local.stride())
    for size, placement in zip(mesh.shape, placements):
        if placement.is_shard():
            dim = placement.dim
            step = strides[dim]
            shape[dim] *= size
            for i, other in enumerate(strides):
                if i != dim and other >= step and local.shape[dim] > 0 and local.shape[i] > 1:
                    strides[i] = other * size
    return shape, strides


def _checked(local, mesh, placements, strict):
    """Replicas become the first process's; parts that differ are an error, in shape only if `strict`."""
    own = (
        local.dtype,
        local.requires_grad,
        *((tuple(local.shape), local.stride()) if strict else (local.dim(),)),
    )
    for i in range(mesh.ndim):
        group = mesh.get_group(i)
        seen = [None] * group.size()
        distributed.all_gather_object(seen, own, group)
        if any(other != own for other in seen):
            parts = "shape and stride" if strict else "number of dimensions"
            raise ValueError(
                f"Inconsistent tensor metadata (including {parts}) across ranks. Found dtype, requires_grad, "
                f"{parts}: {seen}"
            )
    for i, placement in enumerate(placements):
        if placement.is_replicate():
            local = _shared(local, mesh, i, 0)
    return local


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Spread a tensor that every process of the mesh has whole.

    Args:
        placements: how it shall lie; replicated when left out.
        src_data_rank: whose values count, a rank along each mesh dimension; None: each process cuts its own.

    Raises RuntimeError for tensors that are not leaves, ValueError for placements that do not fit.
    """
    mesh = _current_mesh(device_mesh)
    placements = [Replicate()] * mesh.ndim if placements is None else placements
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf!"
        )
    placements = normalized(placements, tensor.dim(), mesh, "distribute_tensor")
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device "
                f"mesh {mesh}."
            )
        if tensor.placements != placements:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements "
                f"{placements}. do you want to call `redistribute` instead?"
            )
        return tensor
    if any(p.is_partial() for p in placements):
        raise RuntimeError("distribute_tensor: Partial is not a way to distribute a tensor")
    local, coordinate = tensor.detach(), mesh.get_coordinate()
    meta = meta_of(tensor)
    if coordinate is None:
        local = tensor.new_empty(0)
    else:
        cut = shard_order(placements)
        for i in [i for i in range(mesh.ndim) if i not in cut]:
            local = _shared(local, mesh, i, src_data_rank)
        for i in cut:
            local = _own_part(local, mesh, i, placements[i].dim, src_data_rank)
    if local.data_ptr() == tensor.data_ptr() and local.numel():
        local = local.clone() if src_data_rank is not None and mesh.size() > 1 else local
    spec = DTensorSpec(mesh, placements, meta)
    return DTensor(local.requires_grad_(False), spec, requires_grad=tensor.requires_grad)


def _shared(local, mesh, i, source):
    """The values of the process `source` along a dimension of the mesh."""
    if source is None or mesh.size(i) == 1 or local.is_meta:
        return local
    local, group = local.clone(memory_format=torch.contiguous_format), mesh.get_group(i)
    distributed.broadcast(local, distributed.get_global_rank(group, source), group)
    return local


def _own_part(local, mesh, i, dim, source):
    ranks, own = mesh.size(i), mesh.get_local_rank(i)
    rows, start = Shard.local_shard_size_and_offset(local.shape[dim], ranks, own)
    if source is None or ranks == 1 or local.is_meta:
        return local.narrow(dim, start, rows).clone(memory_format=torch.contiguous_format)
    group = mesh.get_group(i)
    parts, pads = Shard(dim)._split_tensor(local, ranks)
    part = torch.empty_like(parts[0])
    source = distributed.get_global_rank(group, source)
    distributed.scatter(part, parts if distributed.get_rank() == source else None, source, group)
    return part.narrow(dim, 0, rows).contiguous() if pads[own] else part


def _shard_tensor(full_tensor, placements, device_mesh=None):
    """Each process cuts its part of a tensor that all have, without communication."""
    return distribute_tensor(full_tensor, device_mesh, placements, src_data_rank=None)


def distribute_module(module, device_mesh=None, partition_fn=None, input_fn=None, output_fn=None):
    """Make a module's parameters and buffers DTensors.

    Args:
        partition_fn: (name, submodule, mesh), distributes the parameters it wants to; the rest is replicated.
        input_fn: (module, inputs, mesh), what the module gets instead of its inputs.
        output_fn: (module, outputs, mesh), what it gives instead of its outputs.
    """
    mesh = _current_mesh(device_mesh)
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been called on "
            "this "
            "module!"
        )
    for name, submodule in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, submodule, mesh)
        _replicate_rest(submodule, mesh)
    if input_fn is not None:
        short = len(inspect.signature(input_fn).parameters) == 2
        module.register_forward_pre_hook(
            lambda m, inputs: input_fn(inputs, mesh) if short else input_fn(m, inputs, mesh)
        )
    if output_fn is not None:
        short = len(inspect.signature(output_fn).parameters) == 2
        module.register_forward_hook(
            lambda m, _, outputs: output_fn(outputs, mesh) if short else output_fn(m, outputs, mesh)
        )
    module._distribute_module_applied = True
    return module


def _replicate_rest(module, mesh):
    whole = [Replicate()] * mesh.ndim
    for name, p in module._parameters.items():
        if p is not None and not isinstance(p, DTensor):
            spread = distribute_tensor(p.detach(), mesh, whole)
            module.register_parameter(name, torch.nn.Parameter(spread, p.requires_grad))
    for name, b in module._buffers.items():
        if b is not None and not isinstance(b, DTensor):
            module._buffers[name] = distribute_tensor(b, mesh, whole)


# --- factories ----------------------------------------------------------------------------------------------


def _sizes(size):
    return torch.Size(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)


def _made(make, size, dtype, layout, requires_grad, device_mesh, placements, whole=False):
    """A spread tensor from `make(shape)`; `whole`: the values depend on the place in the whole."""
    mesh = _current_mesh(device_mesh)
    if layout is not torch.strided:
        raise NotImplementedError(f"DTensor: layout {layout}; only torch.strided is here")
    placements = normalized(placements or [Replicate()] * mesh.ndim, len(size), mesh, "factory")
    spec = DTensorSpec(mesh, placements, None)
    part, offset = local_shape_and_offset(size, mesh, placements)
    if whole:
        from rushlight.distributed.tensor._random import own_part

        local = own_part(lambda: make(size), mesh, placements)
    else:
        local = make(part)
    spec.tensor_meta = TensorMeta(torch.Size(size), contiguous_stride(size), local.dtype)
    return DTensor(local, spec, requires_grad=requires_grad)


def ones(
    *size: Any,
    dtype: dtype | None = None,
    layout: Any = torch.strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """`torch.ones`, spread."""
    make = lambda shape: torch.ones(shape, dtype=dtype)  # noqa: E731
    return _made(make, _sizes(size), dtype, layout, requires_grad, device_mesh, placements)


def zeros(
    *size: Any,
    requires_grad: bool = False,
    dtype: dtype | None = None,
    layout: Any = torch.strided,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """`torch.zeros`, spread."""
    make = lambda shape: torch.zeros(shape, dtype=dtype)  # noqa: E731
    return _made(make, _sizes(size), dtype, layout, requires_grad, device_mesh, placements)


def empty(
    *size: Any,
    dtype: dtype | None = None,
    layout: Any = torch.strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """`torch.empty`, spread."""
    make = lambda shape: torch.empty(shape, dtype=dtype)  # noqa: E731
    return _made(make, _sizes(size), dtype, layout, requires_grad, device_mesh, placements)


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: dtype | None = None,
    layout: Any = torch.strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """`torch.full`, spread."""
    make = lambda shape: torch.full(tuple(shape), fill_value, dtype=dtype)  # noqa: E731
    size = (size,) if isinstance(size, int) else size
    return _made(make, _sizes(tuple(size)), dtype, layout, requires_grad, device_mesh, placements)


def rand(
    *size: Any,
    requires_grad: bool = False,
    dtype: dtype | None = None,
    layout: Any = torch.strided,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """`torch.rand`, spread: the numbers that one process would draw."""
    make = lambda shape: torch.rand(shape, dtype=dtype)  # noqa: E731
    return _made(make, _sizes(size), dtype, layout, requires_grad, device_mesh, placements, whole=True)


def randn(
    *size: Any,
    requires_grad: bool = False,
    dtype: dtype | None = None,
    layout: Any = torch.strided,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """`torch.randn`, spread: the numbers that one process would draw."""
    make = lambda shape: torch.randn(shape, dtype=dtype)  # noqa: E731
    return _made(make, _sizes(size), dtype, layout, requires_grad, device_mesh, placements, whole=True)


show_from(
    "distributed.tensor", DTensor, distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros
)
