"""State dicts with the plain model's names: of modules wrapped for data parallelism or recomputation, and of
their optimizers, whose states are keyed by parameter names instead of numbers.

With `full_state_dict` and `broadcast_from_rank0` only rank 0 needs the values that are set.
"""

from __future__ import annotations

from dataclasses import dataclass

from ... import no_grad
from ...nn import Module, Parameter
from ...nn.modules.module import _IncompatibleKeys
from ...nn.parallel import DistributedDataParallel
from .._initialize import get_rank, is_initialized
from .._messages import broadcast_object_list
from ..algorithms._checkpoint.checkpoint_wrapper import ActivationWrapper
from . import _dtensor_states as dtensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """What is got and set.

    full_state_dict: whole tensors; cpu_offload: on the CPU (and, with full_state_dict, on rank 0 alone);
    ignore_frozen_params: leave out parameters without gradients; strict: names must fit;
    broadcast_from_rank0: when setting, rank 0's values are everybody's.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


_WRAPPERS = {DistributedDataParallel: "module.", ActivationWrapper: "_checkpoint_wrapped_module."}


def _plain_names(model: Module) -> dict:
    """{name in the wrapped model: name in the plain one} of parameters and buffers."""
    prefixes = []
    for name, module in model.named_modules():
        for kind, attribute in _WRAPPERS.items():
            if isinstance(module, kind):
                prefixes.append((f"{name}." if name else "") + attribute)
    names = {}
    for name in _own_names(model):
        plain = name
        for prefix in sorted(prefixes, key=len, reverse=True):
            if plain.startswith(prefix):
                parent = prefix[: -len(prefix.split(".")[-2]) - 1]
                plain = parent + plain[len(prefix) :]
        names[name] = plain
    return names


def _own_names(model):
    """Names as modules nest, which wrappers do not embellish."""
    for prefix, module in model.named_modules(remove_duplicate=False):
        for name in (*module._parameters, *module._buffers):
            yield f"{prefix}.{name}" if prefix else name


def _tensor_at(model, name):
    *path, last = name.split(".")
    for part in path:
        model = model._modules[part]
    return model._parameters.get(last, model._buffers.get(last))


def _offloaded(value, options):
    """The value as it is wanted: whole, on the CPU, with memory of its own."""
    if options.full_state_dict:
        value = dtensors.whole(value)
    return value.cpu() if options.cpu_offload and hasattr(value, "cpu") else value


def _leaves_out(options):
    """Whether this rank gets nothing: full state on the CPU is rank 0's."""
    return options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() != 0


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: Any = None
) -> dict:
    """The model's state dict with the plain model's names."""
    options = options or StateDictOptions()
    if dtensors.is_wrapped(model):
        state = dtensors.wrapped_state(model, options)
        return {} if _leaves_out(options) else state
    dtensors.reshard(model)
    chosen = None if submodules is None else {id(m) for s in submodules for m in s.modules()}
    persistent = set(_plain_persistent(model))
    result = {}
    for name, plain in _plain_names(model).items():
        tensor = _tensor_at(model, name)
        if tensor is None or plain not in persistent:
            continue
        if options.ignore_frozen_params and isinstance(tensor, Parameter) and not tensor.requires_grad:
            continue
        if chosen is not None and id(_owner(model, name)) not in chosen:
            continue
        result[plain] = _offloaded(tensor.detach(), options)
    return {} if _leaves_out(options) else result


def _owner(model, name):
    for part in name.split(".")[:-1]:
        model = model._modules[part]
    return model


def _plain_persistent(model):
    """Plain names of what a state dict holds: parameters, and buffers that are to be saved."""
    names = _plain_names(model)
    for name, plain in names.items():
        owner, last = _owner(model, name), name.rsplit(".", 1)[-1]
        if last not in owner._non_persistent_buffers_set:
            yield plain


def set_model_state_dict(model: Module, model_state_dict: dict[str, Any], *, options: Any = None) -> Any:
    """Load a state dict with the plain model's names; returns missing and unexpected keys.

    Raises RuntimeError for names and shapes that do not fit, as `load_state_dict` does."""
    options = options or StateDictOptions()
    state = _from_rank_0(model_state_dict, options)
    if dtensors.is_wrapped(model):
        return dtensors.load_wrapped(model, state, options)
    dtensors.reshard(model)
    wrapped = {plain: name for name, plain in _plain_names(model).items()}
    missing = [p for p in _plain_persistent(model) if p not in state]
    unexpected = [key for key in state if key not in wrapped]
    problems = [f"{key}: unexpected" for key in unexpected] + [f"{key}: missing" for key in missing]
    for key, value in state.items():
        if key in wrapped and _tensor_at(model, wrapped[key]).shape != value.shape:
            here = list(_tensor_at(model, wrapped[key]).shape)
            problems.append(f"{key}: its shape is {list(value.shape)}, the model's {here}")
    if (options.strict and problems) or any("shape" in problem for problem in problems):
        raise RuntimeError(
            "set_model_state_dict: the state does not fit the model:\n  " + "\n  ".join(problems)
        )
    with no_grad():
        for key, value in state.items():
            if key in wrapped:
                dtensors.copy(_tensor_at(model, wrapped[key]), value)
    return _IncompatibleKeys(missing, unexpected)


def _from_rank_0(state, options):
    if not options.broadcast_from_rank0:
        return state
    holder = [dtensors.wholes(state) if get_rank() == 0 else None]
    broadcast_object_list(holder, 0)
    return holder[0]


def _optimizers(optimizers):
    return optimizers if isinstance(optimizers, (list, tuple)) else (optimizers,)


def _names_of_parameters(model):
    return {id(_tensor_at(model, name)): plain for name, plain in _plain_names(model).items()}


def get_optimizer_state_dict(
    model: Module, optimizers: Any, *, submodules: set[Module] | None = None, options: Any = None
) -> dict:
    """{"state": {name: ...}, "param_groups": [{"params": names, ...}]} of one or several optimizers."""
    options = options or StateDictOptions()
    if dtensors.is_wrapped(model):
        result = dtensors.wrapped_optimizer_state(model, _optimizers(optimizers), options)
        if _leaves_out(options):
            return {}
        return _flattened(result) if options.flatten_optimizer_state_dict else result
    dtensors.reshard(model)
    names = _names_of_parameters(model)
    result = {"state": {}, "param_groups": []}
    for optimizer in _optimizers(optimizers):
        dtensors.make_state(optimizer)
        for parameter, state in optimizer.state.items():
            kept = {key: _offloaded(value, options) for key, value in state.items()}
            result["state"][names[id(parameter)]] = kept
        for group in optimizer.param_groups:
            entry = {key: value for key, value in group.items() if key != "params"}
            entry["params"] = [names[id(parameter)] for parameter in group["params"]]
            result["param_groups"].append(entry)
    if _leaves_out(options):
        return {}
    return _flattened(result) if options.flatten_optimizer_state_dict else result


def _flattened(state):
    flat = {f"state.{name}.{key}": v for name, values in state["state"].items() for key, v in values.items()}
    for group in state["param_groups"]:
        for name in group["params"]:
            flat |= {f"param_groups.{name}.{key}": v for key, v in group.items() if key != "params"}
    return flat


def _unflattened(flat, optimizer, names):
    states = {}
    for key, value in flat.items():
        if key.startswith("state."):
            name, entry = key[len("state.") :].rsplit(".", 1)
            states.setdefault(name, {})[entry] = value
    groups = []
    for group in optimizer.param_groups:
        members = [names[id(parameter)] for parameter in group["params"]]
        prefix = f"param_groups.{members[0]}."
        options = {k[len(prefix) :]: v for k, v in flat.items() if k.startswith(prefix)}
        groups.append({**options, "params": members})
    return {"state": states, "param_groups": groups}


def set_optimizer_state_dict(
    model: Module, optimizers: Any, optim_state_dict: dict[str, Any], *, options: Any = None
) -> None:
    """Load what `get_optimizer_state_dict` gave, into optimizers over the same model.

    Raises KeyError for a parameter that the state does not know."""
    options = options or StateDictOptions()
    state = _from_rank_0(optim_state_dict, options)
    if dtensors.is_wrapped(model):
        dtensors.load_wrapped_optimizer(model, _optimizers(optimizers), state)
        return
    dtensors.reshard(model)
    names = _names_of_parameters(model)
    for optimizer in _optimizers(optimizers):
        nested = state if "param_groups" in state else _unflattened(state, optimizer, names)
        numbered: dict = {}
        groups, number = [], 0
        for group in optimizer.param_groups:
            members = [names[id(parameter)] for parameter in group["params"]]
            saved = next((g for g in nested["param_groups"] if members[0] in g["params"]), None)
            if saved is None:
                raise KeyError(
                    f"set_optimizer_state_dict: the state has no group with the parameter {members[0]}"
                )
            indices = range(number, number + len(members))
            numbered |= {
                i: dtensors.laid_out_as(p, nested["state"][name])
                for i, name, p in zip(indices, members, group["params"])
                if name in nested["state"]
            }
            options_of_group = {key: value for key, value in saved.items() if key != "params"}
            groups.append({**options_of_group, "params": list(indices)})
            number += len(members)
        optimizer.load_state_dict({"state": numbered, "param_groups": groups})


def get_state_dict(
    model: Module, optimizers: Any, *, submodules: set[Module] | None = None, options: Any = None
) -> tuple:
    """(model's, optimizers') state dicts."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Module,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: Any = None,
) -> Any:
    """Load both; returns the model's missing and unexpected keys."""
    keys = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return keys
