"""States of optimizers over flat vectors, by the plain model's parameter names."""

import enum
from typing import Any

import rushlight as torch
from rushlight import distributed
from rushlight._command.names import show_from
from rushlight.distributed.fsdp._state_dicts import PREFIX, as_shard, wrappers_of
from rushlight.distributed.fsdp.api import StateDictType
from rushlight.distributed.tensor import DTensor

__all__ = ["OptimStateKeyType"]


class OptimStateKeyType(enum.Enum):
    """What a state is keyed by."""

    PARAM_NAME = enum.auto()
    PARAM_ID = enum.auto()


def _names(model):
    """[(wrapper, entry, plain name)] of all sharded parameters, and {id: name} of the others."""
    sharded, managed = [], set()
    for path, module in model.named_modules():
        group = getattr(module, "_group", None) if module in wrappers_of(model) else None
        if group is None:
            continue
        clean = f"{path}.".replace(PREFIX, "") if path else ""
        managed.add(id(group.part))
        for entry in group.entries:
            sharded.append((module, entry, clean + entry.name))
            if entry.original is not None:
                managed.add(id(entry.original))
    others = {id(p): name.replace(PREFIX, "") for name, p in model.named_parameters() if id(p) not in managed}
    return sharded, others


def _held(group, entry):
    """The tensor that an optimizer has for an entry."""
    return entry.original if group.use_originals else group.part


def gather(model, optim, state_dict):
    """{"state": {name: ...}, "param_groups": [...]}; every rank must call it."""
    wrappers = wrappers_of(model)
    settings = wrappers[0]._settings if wrappers else None
    kind = settings.state_dict_type if settings else StateDictType.FULL_STATE_DICT
    sharded, others = _names(model)
    parameters = [p for group in optim.param_groups for p in group["params"]]
    state = optim.state if state_dict is None else _by_parameter(state_dict["state"], parameters)
    result: dict = {"state": {}, "param_groups": _named_groups(optim, state_dict, sharded, others)}
    for wrapper, entry, name in sharded:
        found = _whole_state(wrapper._group, entry, state.get(_held(wrapper._group, entry), {}))
        if not found:
            continue
        if kind is StateDictType.SHARDED_STATE_DICT:
            found = {k: as_shard(v, wrapper) if isinstance(v, torch.Tensor) else v for k, v in found.items()}
        result["state"][name] = found
    for p in parameters:
        if id(p) in others and p in state:
            result["state"][others[id(p)]] = dict(state[p])
    config = settings.optim_state_dict_config if settings else None
    if getattr(config, "rank0_only", False) and distributed.get_rank() != 0:
        return {}
    return result


def _by_parameter(state, parameters):
    return {parameters[key] if isinstance(key, int) else key: value for key, value in state.items()}


def _whole_state(group, entry, held):
    """An entry's state as whole tensors, from the processes' parts."""
    plain = {k: v for k, v in held.items() if not (isinstance(v, torch.Tensor) and v.dim())}
    kinds = {k: v.dtype for k, v in held.items() if k not in plain}
    if group.ranks == 1:
        agreed: list[Any] = [(kinds, plain)]
    else:
        agreed = [None] * group.ranks
        distributed.all_gather_object(agreed, (kinds, plain), group.group)
    whole: dict = {}
    for _, values in reversed(agreed):
        whole.update(values)
    wanted = {key: dtype for kinds_there, _ in agreed for key, dtype in kinds_there.items()}
    for key in sorted(wanted):
        flat = torch.zeros(group.step, dtype=wanted[key])
        value = held.get(key)
        if value is not None:
            part = group.part_of(entry, value) if not group.use_originals else value
            group.part_of(entry, flat).copy_(part)
        whole[key] = group.whole_of(entry, group.gathered(flat)).clone()
    return whole


def _named_groups(optim, state_dict, sharded, others):
    named = []
    groups = optim.param_groups if state_dict is None else state_dict["param_groups"]
    for own, given in zip(optim.param_groups, groups):
        entry = {key: value for key, value in given.items() if key != "params"}
        entry["params"] = [name for p in own["params"] for name in _names_of(p, sharded, others)]
        named.append(entry)
    return named


def _names_of(p, sharded, others):
    if id(p) in others:
        return [others[id(p)]]
    return [name for wrapper, entry, name in sharded if _held(wrapper._group, entry) is p]


def scatter(model, optim, state_dict, named):
    """What `load_state_dict` takes, from whole tensors or DTensors by name (or number)."""
    sharded, others = _names(model)
    whole = _by_name(state_dict["state"], model)
    state, groups, number = {}, [], 0
    saved_groups = state_dict["param_groups"]
    for index, group in enumerate(optim.param_groups):
        members = []
        for p in group["params"]:
            names = _names_of(p, sharded, others)
            found = _own_state(p, names, whole, sharded, id(p) in others)
            key = names[0] if named else number
            if found:
                state[key] = found
            members.append(key)
            number += 1
        saved = saved_groups[index] if index < len(saved_groups) else group
        groups.append({**{k: v for k, v in saved.items() if k != "params"}, "params": members})
    return {"state": state, "param_groups": groups}


def _by_name(state, model):
    if not state or not all(isinstance(key, int) for key in state):
        return state
    names = _ordered_names(model)
    return {names[key]: value for key, value in state.items()}


def _ordered_names(model):
    return [name for _, _, name in _names(model)[0]] + list(_names(model)[1].values())


def _full(value):
    return value.full_tensor() if isinstance(value, DTensor) else value


def _own_state(p, names, whole, sharded, plain):
    """The state of one tensor of the optimizer."""
    if plain:
        return {key: _full(value) for key, value in whole.get(names[0], {}).items()}
    mine = [(w._group, e, whole[n]) for w, e, n in sharded if n in names and n in whole]
    result: dict = {}
    for group, entry, values in mine:
        for key, value in values.items():
            value = _full(value)
            if not isinstance(value, torch.Tensor) or value.dim() == 0:
                result[key] = value.clone() if isinstance(value, torch.Tensor) else value
                continue
            first, end, _ = group.range_of(entry)
            part = value.reshape(-1)[first:end]
            if group.use_originals:
                result[key] = part.clone()
                continue
            flat = result.setdefault(key, torch.zeros(group.step, dtype=value.dtype))
            group.part_of(entry, flat).copy_(part)
    return result


def rekey(state_dict, kind, model):
    """A whole state keyed by numbers instead of names, or the reverse."""
    names = _ordered_names(model)
    if kind is OptimStateKeyType.PARAM_NAME:
        table: dict = dict(enumerate(names))
    else:
        table = {name: number for number, name in enumerate(names)}
    state = {table.get(key, key): value for key, value in state_dict["state"].items()}
    groups = [
        {**group, "params": [table.get(key, key) for key in group["params"]]}
        for group in state_dict["param_groups"]
    ]
    return {"state": state, "param_groups": groups}


show_from("distributed.fsdp.fully_sharded_data_parallel", OptimStateKeyType)
