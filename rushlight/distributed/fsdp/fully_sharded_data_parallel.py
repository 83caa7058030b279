"""The wrapper form of sharding: a module whose parameters are parts of flat vectors."""

from __future__ import annotations

import contextlib
import os

import rushlight as torch
from rushlight import distributed
from rushlight.distributed.fsdp import _optim_state, _state_dicts
from rushlight.distributed.fsdp._flat_param import FlatParamGroup
from rushlight.distributed.fsdp._fsdp_state import FSDPState
from rushlight.distributed.fsdp._policies import MixedPrecisionPolicy
from rushlight.distributed.fsdp._state_dicts import PREFIX
from rushlight.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from rushlight.distributed.fsdp.wrap import wrap_children
from rushlight.nn import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rushlight import Tensor
    from rushlight.distributed._process_group import ProcessGroup

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]

OptimStateKeyType = _optim_state.OptimStateKeyType
_SHARDS_ONCE = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)
_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)


class _WrapperState(FSDPState):
    """The state of a wrapper: only the outermost casts inputs, unless told otherwise."""

    mixed: MixedPrecision

    def lazy_init(self):
        first = self.shared is None
        super().lazy_init()
        if first and self.is_root:
            for state in self.shared.states:
                state._take_dtypes()

    def _take_dtypes(self):
        mixed = self.mixed
        casts = mixed.cast_root_forward_inputs if self.is_root else mixed.cast_forward_inputs
        self.policy = MixedPrecisionPolicy(mixed.param_dtype, mixed.reduce_dtype, None, casts)
        if mixed.buffer_dtype is not None:
            for wrapper in self.modules:
                for buffer in wrapper.buffers():
                    if buffer.is_floating_point():
                        buffer.data = buffer.to(mixed.buffer_dtype)


class FullyShardedDataParallel(Module):
    """Runs a module whose parameters are sharded over processes.

    Args:
        module: what to wrap.
        process_group: the processes; (those that shard, those with the same parts) for hybrid strategies.
        sharding_strategy: FULL_SHARD unless given.
        cpu_offload: parameters of here are in the CPU's memory.
        auto_wrap_policy: which modules within get wrappers of their own (`fsdp.wrap`).
        backward_prefetch: BACKWARD_PRE and BACKWARD_POST gather the next parameters ahead of time, None not.
        mixed_precision: dtypes of the computation.
        ignored_modules, ignored_states: modules or parameters that stay as they are.
        param_init_fn: function of a module with parameters on the meta device, which gives them values.
        device_id: the CPU, if given.
        sync_module_states: whether rank 0's parameters and buffers are everybody's.
        forward_prefetch, limit_all_gathers: accepted; nothing runs ahead on the CPU.
        use_orig_params: whether `parameters()` are parts of the original ones, instead of flat vectors.
        device_mesh: 1-d, or 2-d for hybrid strategies: (same parts, shards).

    Make optimizers afterwards. Raises ValueError for parameters that cannot share a vector.

    Example:
        >>> def train(model):  # in each process, after init_process_group
        ...     model = torch.distributed.fsdp.FullyShardedDataParallel(model)
        ...     optimizer = torch.optim.AdamW(model.parameters())
        ...     model(torch.ones(2, 4)).sum().backward()
        ...     optimizer.step()
    """

    def __init__(
        self,
        module,
        process_group=None,
        sharding_strategy=None,
        cpu_offload=None,
        auto_wrap_policy=None,
        backward_prefetch=BackwardPrefetch.BACKWARD_PRE,
        mixed_precision=None,
        ignored_modules=None,
        param_init_fn=None,
        device_id=None,
        sync_module_states=False,
        forward_prefetch=False,
        limit_all_gathers=True,
        use_orig_params=False,
        ignored_states=None,
        device_mesh=None,
    ):
        super().__init__()
        if any(isinstance(m, FullyShardedDataParallel) for m in module.modules()) and auto_wrap_policy:
            raise ValueError("FSDP auto wrapping requires modules to not already have FSDP applied")
        if device_id is not None and torch.device(device_id).type != "cpu":
            raise ValueError(f"FullyShardedDataParallel: device_id={device_id}; this build has the CPU only")
        self.sharding_strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        groups = _groups_of(process_group, device_mesh, self.sharding_strategy)
        mixed = mixed_precision or MixedPrecision()
        ignored_modules = {m for root in ignored_modules or () for m in root.modules()}
        ignored = _ignored(ignored_modules, ignored_states)
        if auto_wrap_policy is not None:
            common = {
                "process_group": process_group,
                "sharding_strategy": sharding_strategy,
                "cpu_offload": cpu_offload,
                "backward_prefetch": backward_prefetch,
                "mixed_precision": mixed_precision,
                "ignored_states": list(ignored),
                "param_init_fn": param_init_fn,
                "sync_module_states": sync_module_states,
                "use_orig_params": use_orig_params,
                "device_mesh": device_mesh,
            }
            make = lambda child, **own: FullyShardedDataParallel(child, **{**common, **own})  # noqa: E731
            wrap_children(module, auto_wrap_policy, make, ignored_modules, ignored)
        self.process_group = groups[0] if groups[0] is not None else groups[1]
        self._device_mesh, self.mixed_precision = device_mesh, mixed
        self.cpu_offload = cpu_offload or CPUOffload()
        self.compute_device = torch.device("cpu")
        self._use_orig_params = use_orig_params
        self._summoned = False
        self._settings = StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )
        self._fsdp_wrapped_module = module
        _fill_meta(module, param_init_fn, ignored)
        if sync_module_states:
            _share_states(module, self.process_group, ignored)
        found = _own_parameters(module, ignored)
        group = FlatParamGroup(found, *groups, mixed, use_orig_params) if found else None
        reshards = False if self.sharding_strategy in (*_SHARDS_ONCE, ShardingStrategy.NO_SHARD) else None
        self._fsdp_state = _WrapperState([self], group, MixedPrecisionPolicy(), reshards)
        self._fsdp_state.mixed = mixed
        self._fsdp_state.prefetches = backward_prefetch is not None
        if group is not None:
            group.show_sharded()
            self._show_flat(True)
        self.register_load_state_dict_pre_hook(_state_dicts.before_load)
        self.register_load_state_dict_post_hook(_state_dicts.after_load)

    # --- what is inside

    @property
    def module(self):
        """The wrapped module."""
        return self._fsdp_wrapped_module

    @property
    def _group(self):
        return self._fsdp_state.group

    @property
    def _has_params(self):
        return self._group is not None

    @property
    def _flat_param(self):
        return self._group.part if self._group is not None else None

    def _show_flat(self, shown):
        """Register the flat vector with the wrapped module, where optimizers are to find it."""
        if self._group is None or self._use_orig_params:
            return
        if shown:
            own = self._fsdp_wrapped_module._parameters
            others = dict(own)
            own.clear()
            own["_flat_param"] = self._group.part
            own.update(others)
        else:
            self._fsdp_wrapped_module._parameters.pop("_flat_param", None)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == PREFIX[:-1]:
                raise
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key):
        return self._fsdp_wrapped_module[key]

    def check_is_root(self) -> bool:
        """Whether this wrapper is the outermost one."""
        self._fsdp_state.lazy_init()
        return self._fsdp_state.is_root

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[Any]:
        """The wrappers in a module; the outermost ones with `root_only`."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        if not root_only:
            return found
        inner = {id(m) for w in found for m in w.modules() if m is not w}
        return [w for w in found if id(w) not in inner]

    def named_parameters(self, *args: Any, **kwargs: Any):
        """As of any module; without the wrappers' prefix inside `summon_full_params`."""
        for name, p in super().named_parameters(*args, **kwargs):
            yield (name.replace(PREFIX, "") if self._summoned else name), p

    def named_buffers(self, *args: Any, **kwargs: Any):
        """As of any module; without the wrappers' prefix inside `summon_full_params`."""
        for name, b in super().named_buffers(*args, **kwargs):
            yield (name.replace(PREFIX, "") if self._summoned else name), b

    def apply(self, fn: Callable[..., Any]):
        """`Module.apply` on whole parameters."""
        with self.summon_full_params(self, recurse=True) if not self._summoned else contextlib.nullcontext():
            return super().apply(fn)

    # --- running

    def forward(self, *args: Any, **kwargs: Any):
        args, kwargs = self._fsdp_state.pre_forward(args, kwargs)
        return self._fsdp_state.post_forward(self._fsdp_wrapped_module(*args, **kwargs))

    @contextlib.contextmanager
    def no_sync(self):
        """Inside, backward passes add up whole gradients in each process instead of reducing them."""
        groups = [w._group for w in self.fsdp_modules(self) if w._group is not None]
        before = [group.reduces for group in groups]
        for group in groups:
            group.reduces = False
        try:
            yield
        finally:
            for group, value in zip(groups, before):
                group.reduces = value

    def register_comm_hook(self, state: Any, hook: Callable[..., Any]) -> None:
        """`hook(state, gradient, part)` reduces instead: whole gradients into this process's part."""
        for wrapper in self.fsdp_modules(self):
            if wrapper._group is not None:
                wrapper._group.hook = (hook, state)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale all gradients so that their norm, over all processes, is at most `max_norm`; returns the
        norm."""
        self._fsdp_state.lazy_init()
        if not self._fsdp_state.is_root:
            raise RuntimeError("`clip_grad_norm_()` should only be called on the root FSDP instance")
        norm_type = float(norm_type)
        parts, whole, seen = [], [], set()
        for wrapper in self.fsdp_modules(self):
            group = wrapper._group
            if group is not None and id(group) not in seen:
                seen.add(id(group))
                (parts if group.group is not None else whole).extend(group.gradients())
        managed = {id(g) for g in parts + whole}
        whole += [p.grad for p in self.parameters() if p.grad is not None and id(p.grad) not in managed]
        total = _total_norm(parts, whole, norm_type, self.process_group)
        scale = torch.clamp(float(max_norm) / (total + 1e-6), max=1.0)
        for gradient in parts + whole:
            gradient.detach().mul_(scale.to(gradient.dtype))
        return total

    # --- whole parameters

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ):
        """Inside, the modules' parameters are the whole ones.

        Args:
            recurse: whether those of wrappers within, too.
            writeback: whether changes count afterwards.
            rank0_only: whether the other ranks keep their parts.
            with_grads: whether gradients are gathered, too; needs use_orig_params.
        """
        if writeback and rank0_only:
            raise NotImplementedError("writeback=True and rank0_only=True is not supported yet")
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        if not recurse:
            wrappers = [w for w in wrappers if w is module]
        if with_grads and any(not w._use_orig_params for w in wrappers):
            raise NotImplementedError("with_grads=True is only supported with use_orig_params=True")
        with contextlib.ExitStack() as stack:
            for wrapper in wrappers:
                stack.enter_context(_state_dicts.whole_parameters(wrapper, writeback, rank0_only, with_grads))
            yield

    # --- states

    def state_dict(self, *args: Any, destination=None, prefix: str = "", keep_vars=False) -> dict[str, Any]:
        """The state with the plain module's names, of the kind that `set_state_dict_type` says."""
        return _state_dicts.state_dict(self, super().state_dict, destination, prefix, keep_vars)

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: Any,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> StateDictSettings:
        """Set what `state_dict` and `optim_state_dict` of the wrappers in a module give; returns the
        former."""
        return _state_dicts.set_type(module, state_dict_type, state_dict_config, optim_state_dict_config)

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """What `set_state_dict_type` set."""
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        if not wrappers:
            raise RuntimeError("get_state_dict_type: there is no FullyShardedDataParallel in the module")
        return wrappers[0]._settings

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: Any,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ):
        """`set_state_dict_type` for a while."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            FullyShardedDataParallel.set_state_dict_type(
                module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config
            )

    @staticmethod
    def optim_state_dict(
        model: Module,
        optim: Any,
        optim_state_dict: dict[str, Any] | None = None,
        group: ProcessGroup | None = None,
    ):
        """An optimizer's state keyed by the plain model's parameter names, in their shapes."""
        return _optim_state.gather(model, optim, optim_state_dict)

    @staticmethod
    def optim_state_dict_to_load(
        model: Module,
        optim: Any,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: ProcessGroup | None = None,
    ):
        """What `optim.load_state_dict` takes, from what `optim_state_dict` gave."""
        state = _optim_state.scatter(model, optim, optim_state_dict, is_named_optimizer)
        if load_directly:
            optim.load_state_dict(state)
        return state

    @staticmethod
    def full_optim_state_dict(
        model: Module,
        optim: Any,
        optim_input=None,
        rank0_only: bool = True,
        group: ProcessGroup | None = None,
    ):
        """`optim_state_dict` of whole tensors; the ranks but 0 get an empty one unless told otherwise."""
        config = FullOptimStateDictConfig(rank0_only=rank0_only)
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, None, config):
            return _optim_state.gather(model, optim, None)

    @staticmethod
    def sharded_optim_state_dict(model: Module, optim: Any, group: ProcessGroup | None = None):
        """`optim_state_dict` of DTensors."""
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            return _optim_state.gather(model, optim, None)

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict, model: Module, optim_input=None, optim: Any = None
    ):
        """What `optim.load_state_dict` takes, from whole tensors that every rank has."""
        return _optim_state.scatter(model, optim, full_optim_state_dict, False)

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict,
        model: Module,
        optim_input=None,
        optim: Any = None,
        group: ProcessGroup | None = None,
    ):
        """What `optim.load_state_dict` takes, from whole tensors that rank 0 has."""
        holder = [full_optim_state_dict]
        distributed.broadcast_object_list(holder, 0)
        return _optim_state.scatter(model, optim, holder[0], False)

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any],
        optim_state_key_type,
        model: Module,
        optim_input=None,
        optim: Any = None,
    ):
        """A whole state keyed by numbers instead of names, or the reverse."""
        return _optim_state.rekey(optim_state_dict, optim_state_key_type, model)


def _groups_of(process_group, mesh, strategy):
    """(the processes that shard or None, those with the same parts or None)."""
    if mesh is not None:
        if mesh.ndim == 2:
            return mesh.get_group(1), mesh.get_group(0)
        process_group = mesh.get_group()
    if strategy in _HYBRID:
        if not isinstance(process_group, tuple):
            local = int(os.environ.get("LOCAL_WORLD_SIZE", distributed.get_world_size()))
            world = distributed.get_world_size()
            shards, _ = distributed.new_subgroups(local)
            lines = [list(range(first, world, local)) for first in range(local)]
            copies, _ = distributed.new_subgroups_by_enumeration(lines)
            return shards, copies
        return process_group
    process_group = process_group or distributed.group.WORLD
    if process_group is None:
        process_group = distributed.distributed_c10d._get_default_group()
    if strategy is ShardingStrategy.NO_SHARD:
        return None, process_group
    return process_group, None


def _ignored(modules, states):
    ignored = {p for m in modules for p in m.parameters()}
    for state in states or ():
        ignored |= set(state.parameters()) if isinstance(state, Module) else {state}
    return ignored


def _own_parameters(module, ignored):
    """[(parameter, [(module, name)], full name)] of what no wrapper within has."""
    found: dict = {}

    def visit(current, prefix):
        if isinstance(current, FullyShardedDataParallel):
            return
        for name, p in current._parameters.items():
            if p is not None and p not in ignored:
                found.setdefault(p, (p, [], prefix + name))[1].append((current, name))
        for name, child in current.named_children():
            visit(child, f"{prefix}{name}.")

    visit(module, "")
    return list(found.values())


def _fill_meta(module, init, ignored):
    for m in module.modules():
        own = [p for p in m.parameters(recurse=False) if p not in ignored]
        if isinstance(m, FullyShardedDataParallel) or not any(p.is_meta for p in own):
            continue
        if init is not None:
            init(m)
        elif hasattr(m, "reset_parameters"):
            m.to_empty(device="cpu", recurse=False)
            m.reset_parameters()
        else:
            raise ValueError(f"{type(m).__name__} has parameters on the meta device: give param_init_fn")


def _share_states(module, group, ignored):
    """Give rank 0's values to all; wrappers within have done so themselves."""
    root = distributed.get_global_rank(group, 0)
    inner = [w for w in module.modules() if isinstance(w, FullyShardedDataParallel)]
    done = {b for w in inner for b in w.buffers()}
    tensors = [p for p, _, _ in _own_parameters(module, ignored)]
    for tensor in tensors + [b for b in module.buffers() if b not in done]:
        distributed.broadcast(tensor.detach(), root, group)


def _total_norm(parts, whole, norm_type, group):
    """The norm of gradients that processes have parts of, and of those that each has."""
    largest = norm_type == float("inf")

    def measure(gradients):
        norms = [torch.linalg.vector_norm(g.detach().float(), norm_type) for g in gradients]
        if not norms:
            return torch.tensor(0.0)
        return torch.stack(norms).max() if largest else (torch.stack(norms) ** norm_type).sum()

    total = measure(parts)
    distributed.all_reduce(total, distributed.ReduceOp.MAX if largest else distributed.ReduceOp.SUM, group)
    own = measure(whole)
    return torch.maximum(total, own) if largest else (total + own) ** (1.0 / norm_type)
