"""`fully_shard`: each process keeps a part of every parameter, its gradient and its optimizer state."""

from __future__ import annotations

import functools

import rushlight as torch
from rushlight import distributed
from rushlight._command.names import show_from
from rushlight.distributed.device_mesh import init_device_mesh
from rushlight.distributed.fsdp._fsdp_param import FSDPParam
from rushlight.distributed.fsdp._fsdp_state import FSDPState
from rushlight.distributed.fsdp._param_group import FSDPParamGroup
from rushlight.distributed.fsdp._policies import MixedPrecisionPolicy, OffloadPolicy
from rushlight.distributed.tensor.placement_types import Shard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rushlight.nn import Module

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]

nn = torch.nn


class UnshardHandle:
    """A gathering that was started with `unshard(async_op=True)`."""

    def __init__(self, group: Any) -> None:
        self._group = group

    def wait(self) -> None:
        """Wait until the module may be used."""
        if self._group is not None:
            self._group.wait_for_unshard()
            self._group = None


class FSDPModule:
    """The class that `fully_shard` adds to a module's."""

    _fsdp_state: FSDPState

    def __new__(cls, *args, **kwargs):
        """A new module made from the class of a sharded one is a plain module."""
        plain = cls.__mro__[2]
        made = plain.__new__(plain, *args, **kwargs)
        made.__init__(*args, **kwargs)
        return made

    def _get_fsdp_state(self):
        return self._fsdp_state

    def _states(self, recurse):
        modules = self.modules() if recurse else [self]
        return [m._fsdp_state for m in modules if isinstance(m, FSDPModule)]

    def _set(self, recurse, **values):
        for state in self._states(recurse):
            if state.group is not None:
                for name, value in values.items():
                    setattr(state.group, name, value)

    def reshard(self) -> None:
        """Give the whole parameters back."""
        if self._fsdp_state.group is not None:
            self._fsdp_state.group.reshard()

    def unshard(self, async_op: bool = False):
        """Gather the whole parameters; with `async_op` returns a handle to wait for."""
        group = self._fsdp_state.group
        if group is not None:
            group.start_unshard(async_op)
        handle = UnshardHandle(group)
        if async_op:
            return handle
        handle.wait()
        return None

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Whether the next backward pass is the last one before the optimizer's step."""
        self._fsdp_state.lazy_init()
        self._fsdp_state.shared.is_last_backward = is_last_backward

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backward passes reduce gradients; without, whole ones are added up in each process."""
        self._set(recurse, reduces=requires_gradient_sync, reduces_copies=requires_gradient_sync)

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether backward passes reduce gradients over the copies, too (2-d meshes)."""
        self._set(recurse, reduces_copies=requires_all_reduce)

    def set_reshard_after_forward(self, reshard_after_forward: Any, recurse: bool = True) -> None:
        """Whether the whole parameters are given back between the forward and the backward pass."""
        for state in self._states(recurse):
            state.reshards_after_forward, state.auto_reshard = reshard_after_forward, False

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether the whole parameters are given back after the backward pass."""
        self._set(recurse, reshards_after_backward=reshard_after_backward)

    def set_modules_to_forward_prefetch(self, modules: list[Any]) -> None:
        """Modules that are gathered while this one runs."""
        self._fsdp_state.forward_prefetch = [_sharded(m)._fsdp_state for m in modules]

    def set_modules_to_backward_prefetch(self, modules: list[Any]) -> None:
        """Modules that are gathered while this one's backward pass runs; the one before it otherwise."""
        self._fsdp_state.backward_prefetch = [_sharded(m)._fsdp_state for m in modules]

    def set_all_reduce_hook(self, hook: Callable[..., Any], *, stream: Any = None) -> None:
        """A function that gets each reduced part of gradients, and may change it."""
        self._set(False, all_reduce_hook=hook)

    def set_custom_all_gather(self, comm: Any) -> None:
        """Gather this module's parameters with an `AllGather` of one's own."""
        self._set(False, all_gather=comm)

    def set_custom_reduce_scatter(self, comm: Any) -> None:
        """Reduce this module's gradients with a `ReduceScatter` of one's own."""
        self._set(False, reduce_scatter=comm)

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What gradients are divided by instead of the number of processes."""
        self._set(False, divide_factor=factor)

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether the backward pass needs the parameters; an embedding's, for one, does not."""
        self._fsdp_state.unshards_in_backward = unshard_in_backward

    def _set_unshard_async_op(self, async_op):
        self._set(True, async_unshard=async_op)

    def _apply(self, *args, **kwargs):
        self.reshard()
        result = super()._apply(*args, **kwargs)
        if self._fsdp_state.group is not None:
            for parameter in self._fsdp_state.group.parameters:
                parameter.adopt()
        return result


def _sharded(module):
    if not isinstance(module, FSDPModule):
        raise ValueError(f"expected modules given to fully_shard, but got {type(module)}")
    return module


@functools.cache
def _class_with(cls):
    made = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {})
    made.__module__ = cls.__module__
    return made


def fully_shard(
    module,
    *,
    mesh=None,
    reshard_after_forward=None,
    shard_placement_fn=None,
    mp_policy=MixedPrecisionPolicy(),  # noqa: B008
    offload_policy=OffloadPolicy(),  # noqa: B008
    ignored_params=None,
    dp_mesh_dims=None,
):
    """Shard the parameters of a module that are not sharded yet over the processes of a mesh, in place.

    Apply it to a model's blocks first, then to the model: what belongs to one call is gathered together. Make
    optimizers afterwards: parameters become DTensors. Returns the module, whose class is an FSDPModule then.

    Args:
        module: a module, or a list of modules that are gathered together.
        mesh: 1-d, or 2-d: copies along the first dimension, parts along the second; all processes otherwise.
        reshard_after_forward: whether the whole parameters are given back between forward and backward pass:
            True, False, or None, which means no for the root alone. A number: they are spread over so many
            neighbours only, from which the backward pass gathers them again.
        shard_placement_fn: parameter -> Shard(dim) or None, along which dimension it is cut.
        mp_policy: dtypes of the computation.
        offload_policy: where parameters rest.
        ignored_params: parameters to leave alone.
        dp_mesh_dims: which dimensions of a larger mesh to use.

    Raises ValueError for a module that was sharded already, for containers that do not run, for scalars.
    """
    modules = [module] if isinstance(module, nn.Module) else list(module)
    for m in modules:
        if isinstance(m, (nn.ModuleList, nn.ModuleDict)):
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {m}")
        if "_fsdp_state" in m.__dict__:
            raise ValueError(f"fully_shard has already been applied to this {type(m).__name__}")
    mesh, near = _mesh_of(mesh, dp_mesh_dims), 1
    if isinstance(reshard_after_forward, int) and not isinstance(reshard_after_forward, bool):
        if reshard_after_forward < 1 or mesh.size(mesh.ndim - 1) % reshard_after_forward:
            raise ValueError(
                f"reshard_after_forward={reshard_after_forward} should divide the number of processes that "
                f"shard, {mesh.size(mesh.ndim - 1)}"
            )
        near = reshard_after_forward if reshard_after_forward < mesh.size(mesh.ndim - 1) else 1
        reshard_after_forward = reshard_after_forward > 1
    places = _places(modules, {id(p) for p in ignored_params or ()})
    cut = shard_placement_fn or (lambda _: None)
    parameters = []
    for p, at in places.values():
        placement = cut(p)
        if placement is not None and not isinstance(placement, Shard):
            raise ValueError(f"shard_placement_fn: expected Shard or None, but got {placement!r}")
        parameters.append(FSDPParam(p, at, mesh, placement, mp_policy))
    group = FSDPParamGroup(parameters, mesh, mp_policy) if parameters else None
    if near > 1 and group is not None:
        group.keep_near(_neighbours(group.group, near))
    state = FSDPState(modules, group, mp_policy, reshard_after_forward)
    for m in modules:
        m._fsdp_state = state
        m.__class__ = _class_with(type(m))
        m.register_state_dict_pre_hook(lambda self, prefix, keep: self.reshard())
        m.register_load_state_dict_pre_hook(lambda self, *_: self.reshard())
    _hook(modules, state)
    return module


_small_groups: dict = {}


def _neighbours(group, count):
    """The group of `count` consecutive ranks that this process is in."""
    begin = group.rank() // count * count
    ranks = tuple(group._ranks[begin : begin + count])
    known = _small_groups.get(ranks)
    if known is None or distributed.distributed_c10d._world.groups.get(known.group_name) is not known:
        known = _small_groups[ranks] = distributed.new_group(list(ranks), use_local_synchronization=True)
    return known


def _mesh_of(mesh, dims):
    if mesh is None:
        return init_device_mesh("cpu", (distributed.get_world_size(),), mesh_dim_names=("fsdp",))
    if dims is not None:
        names = []
        for part in (dims.replicate, dims.shard):
            names += [part] if isinstance(part, str) else list(part or ())
        mesh = mesh[tuple(names)]
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    return mesh


def _places(modules, ignored):
    """{id: (parameter, [(module, name)])} of what no fully_shard within has taken."""
    found, seen = {}, set()

    def visit(module):
        if id(module) in seen or "_fsdp_state" in module.__dict__:
            return
        seen.add(id(module))
        for name, p in module._parameters.items():
            if p is not None and id(p) not in ignored:
                found.setdefault(id(p), (p, []))[1].append((module, name))
        for child in module.children():
            visit(child)

    for module in modules:
        visit(module)
    return found


def _hook(modules, state):
    """Several modules that are gathered together: before the first, after the last."""
    running = []

    def before(module, args, kwargs):
        if len(modules) > 1 and running:
            return None
        running.append(module)
        return state.pre_forward(args, kwargs)

    def after(module, args, output):
        if len(modules) > 1 and module is not modules[-1]:
            return None
        running.clear()
        return state.post_forward(output)

    for module in modules:
        module.register_forward_pre_hook(before, prepend=True, with_kwargs=True)
        module.register_forward_hook(after, prepend=False)


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Have a method other than forward gather the module's parameters, too."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    original = getattr(module, method_name)

    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        args, kwargs = module._fsdp_state.pre_forward(args, kwargs)
        return module._fsdp_state.post_forward(original(*args, **kwargs))

    setattr(module, method_name, wrapped)


show_from("distributed.fsdp", FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method)
