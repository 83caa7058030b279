"""States of wrappers: whole tensors, shards, or flat parts, under the plain module's names."""

import contextlib
from collections import OrderedDict

import rushlight as torch
from rushlight import distributed
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.fsdp.api import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    StateDictSettings,
    StateDictType,
)
from rushlight.distributed.tensor import DTensor, Shard, distribute_tensor

PREFIX = "_fsdp_wrapped_module."
_CONFIGS = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


def wrappers_of(module):
    return [m for m in module.modules() if hasattr(m, "_fsdp_state") and hasattr(m, "_settings")]


def set_type(module, kind, config, optim_config):
    """Set the kind of state of all wrappers in a module; returns what the first one had."""
    expected, expected_optim = _CONFIGS[kind]
    config, optim_config = config or expected(), optim_config or expected_optim()
    for given, wanted in ((config, expected), (optim_config, expected_optim)):
        if type(given) is not wanted:
            raise RuntimeError(f"Expected a config of type {wanted} for {kind}, but got {type(given)}")
    before = None
    for wrapper in wrappers_of(module):
        before = before or wrapper._settings
        wrapper._settings = StateDictSettings(kind, config, optim_config)
    if before is None:
        first, second = _CONFIGS[StateDictType.FULL_STATE_DICT]
        before = StateDictSettings(StateDictType.FULL_STATE_DICT, first(), second())
    return before


@contextlib.contextmanager
def whole_parameters(wrapper, writeback, rank0_only=False, with_grads=False):
    """Inside, the wrapper's modules have whole Parameters."""
    group = wrapper._group
    if group is None:
        wrapper._summoned = True
        try:
            yield
        finally:
            wrapper._summoned = False
        return
    group.reshard()
    group.adopt()
    vector = group.gathered(group.part.detach())
    gradients = _gathered_gradients(group) if with_grads else None
    shown = not rank0_only or distributed.get_rank() == 0
    made = []
    if shown:
        wrapper._show_flat(False)
        made = _show_whole(group, vector, gradients)
        wrapper._summoned = True
    try:
        yield
    finally:
        wrapper._summoned = False
        if writeback:
            with torch.no_grad():
                for entry, p in zip(group.entries, made):
                    part = group.whole_of(entry, vector)
                    if part.data_ptr() != p.data_ptr():
                        part.copy_(p.detach())
            group.write_back(vector)
            if gradients is not None:
                _keep_gradients(group, made)
        group.show_sharded()
        if shown:
            wrapper._show_flat(True)


def _show_whole(group, vector, gradients):
    made = []
    for entry in group.entries:
        p = torch.nn.Parameter(group.whole_of(entry, vector), requires_grad=entry.requires_grad)
        if gradients is not None:
            p.grad = group.whole_of(entry, gradients).clone()
        for module, name in entry.places:
            module.__dict__.pop(name, None)
            module._parameters[name] = p
        made.append(p)
    return made


def _gathered_gradients(group):
    flat = torch.zeros_like(group.part.detach())
    for entry in group.entries:
        if entry.original.grad is not None:
            group.part_of(entry, flat).copy_(entry.original.grad)
    return group.gathered(flat)


def _keep_gradients(group, made):
    for entry, p in zip(group.entries, made):
        if p.grad is None:
            entry.original.grad = None
        elif entry.original.grad is not None:
            first, end, _ = group.range_of(entry)
            entry.original.grad.copy_(p.grad.reshape(-1)[first:end])


def mesh_of(wrapper):
    """A mesh of the processes that share the wrapper's vector."""
    if wrapper._device_mesh is not None:
        mesh = wrapper._device_mesh
        if mesh.ndim == 1:
            return mesh
        names = mesh.mesh_dim_names
        if names:
            return mesh[names[1]]
    group = wrapper.process_group
    if not hasattr(group, "_fsdp_mesh"):
        group._fsdp_mesh = DeviceMesh.from_group(group, "cpu")
    return group._fsdp_mesh


def as_shard(tensor, wrapper):
    """A whole tensor, as a DTensor of which this process keeps its rows."""
    if wrapper._group is None or wrapper._group.ranks == 1 or tensor.dim() == 0:
        return tensor
    return distribute_tensor(tensor, mesh_of(wrapper), [Shard(0)], src_data_rank=None)


def state_dict(wrapper, plain, destination, prefix, keep_vars):
    """The state of one wrapper and all within it."""
    settings = wrapper._settings
    kind, config = settings.state_dict_type, settings.state_dict_config
    outermost = destination is None
    destination = OrderedDict() if destination is None else destination
    if not hasattr(destination, "_metadata"):
        destination._metadata = OrderedDict()
    if kind is StateDictType.LOCAL_STATE_DICT:
        _local_state(wrapper, plain, destination, prefix)
    else:
        with whole_parameters(wrapper, writeback=False):
            before = set(destination)
            plain(destination=destination, prefix=prefix, keep_vars=keep_vars)
            own = _own_keys(wrapper, prefix)
            for key in [k for k in destination if k not in before and k in own]:
                value = destination[key]
                if isinstance(value, torch.Tensor):
                    spread = kind is StateDictType.SHARDED_STATE_DICT
                    destination[key] = as_shard(value, wrapper) if spread else value.clone()
    _rename(destination, prefix + PREFIX, prefix)
    if (
        outermost
        and kind is StateDictType.FULL_STATE_DICT
        and config.rank0_only
        and distributed.get_rank() != 0
    ):
        destination.clear()
    return destination


def _own_keys(wrapper, prefix):
    """The keys of the wrapper's own parameters, as modules nest."""
    group = wrapper._group
    if group is None:
        return set()
    places = {(id(m), name) for entry in group.entries for m, name in entry.places}
    keys = set()
    for path, module in wrapper.named_modules(remove_duplicate=False):
        for name in module._parameters:
            if (id(module), name) in places:
                keys.add(prefix + (f"{path}." if path else "") + name)
    return keys


def _local_state(wrapper, plain, destination, prefix):
    group = wrapper._group
    if group is not None:
        group.reshard()
        group.adopt()
        wrapper._show_flat(False)
    plain(destination=destination, prefix=prefix, keep_vars=False)
    if group is not None:
        wrapper._show_flat(True)
        destination[f"{prefix}{PREFIX}_flat_param"] = group.part.detach()


def _rename(state, old, new):
    """Give keys another prefix, in place and in order."""
    items = list(state.items())
    state.clear()
    for key, value in items:
        state[new + key[len(old) :] if key.startswith(old) else key] = value


def before_load(wrapper, state, prefix, *_):
    """The wrapper's modules take whole parameters, or the vector takes its part."""
    _add_prefix(state, prefix)
    group, kind = wrapper._group, wrapper._settings.state_dict_type
    if group is None:
        return
    if kind is StateDictType.LOCAL_STATE_DICT:
        key = f"{prefix}{PREFIX}_flat_param"
        group.reshard()
        with torch.no_grad():
            group.part.detach().copy_(state.pop(key))
        for key in _own_keys(wrapper, prefix):
            state.pop(key, None)
        wrapper._loading = _without_own(wrapper)
    else:
        own = prefix + PREFIX
        for key, value in state.items():
            if key.startswith(own) and isinstance(value, DTensor):
                state[key] = value.full_tensor()
        wrapper._loading = whole_parameters(wrapper, writeback=True)
    wrapper._loading.__enter__()


@contextlib.contextmanager
def _without_own(wrapper):
    """Inside, the modules have no parameters that a state would have to hold."""
    taken = []
    wrapper._show_flat(False)
    for entry in wrapper._group.entries:
        for module, name in entry.places:
            if name in module._parameters:
                taken.append((module, name, module._parameters.pop(name)))
    try:
        yield
    finally:
        for module, name, p in taken:
            module._parameters[name] = p
        wrapper._show_flat(True)


def _add_prefix(state, prefix):
    items = list(state.items())
    state.clear()
    for key, value in items:
        if key.startswith(prefix) and not key.startswith(prefix + PREFIX):
            key = prefix + PREFIX + key[len(prefix) :]
        state[key] = value


def after_load(wrapper, keys):
    loading = wrapper.__dict__.pop("_loading", None)
    if loading is not None:
        loading.__exit__(None, None, None)
    for names in (keys.missing_keys, keys.unexpected_keys):
        names[:] = [name.replace(PREFIX, "") for name in names]
