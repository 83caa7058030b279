"""What `state_dict` needs to know of spread tensors and of wrappers that shard."""

import rushlight as torch

_PREFIXES = ("module.", "_checkpoint_wrapped_module.", "_fsdp_wrapped_module.")


def _is_dtensor(value):
    return hasattr(value, "full_tensor")


def whole(value):
    """The whole tensor of a spread one; every rank must ask for it."""
    return value.full_tensor() if _is_dtensor(value) else value


def wholes(state):
    """A nested state with whole tensors."""
    if isinstance(state, dict):
        return {key: wholes(value) for key, value in state.items()}
    return whole(state)


def part_for(target, value):
    """A whole tensor, or a DTensor in another layout, as a DTensor that lies as `target` does."""
    if not _is_dtensor(target) or not isinstance(value, torch.Tensor):
        return whole(value)
    if _is_dtensor(value):
        return (
            value
            if value.placements == target.placements
            else value.redistribute(placements=target.placements)
        )
    from ..tensor import distribute_tensor

    plain = value.detach()
    return distribute_tensor(plain, target.device_mesh, target.placements, src_data_rank=None)


def copy(target, value):
    """Copy a value, whole or spread, into a parameter or buffer."""
    target.copy_(part_for(target, value))


def laid_out_as(parameter, state):
    """An optimizer's state of a parameter: tensors of its shape lie as it does."""
    shaped = lambda v: isinstance(v, torch.Tensor) and v.dim() > 0 and v.shape == parameter.shape  # noqa: E731
    return {key: part_for(parameter, v) if shaped(v) else whole(v) for key, v in state.items()}


def reshard(model):
    """Have sharded modules show their parts."""
    for module in model.modules():
        state = getattr(module, "_fsdp_state", None)
        if state is not None and state.group is not None:
            state.group.reshard()


def make_state(optimizer):
    """Give an optimizer that has made no step yet the state that its first one would make.

    A step with gradients of zero and a learning rate of zero changes no parameter."""
    if optimizer.state:
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if any(p.grad is not None for p in parameters):
        return  # a program between backward() and step()
    rates = [group.get("lr") for group in optimizer.param_groups]
    for p in parameters:
        p.grad = torch.zeros_like(p)
    for group in optimizer.param_groups:
        if "lr" in group:
            group["lr"] = torch.tensor(0.0) if isinstance(group["lr"], torch.Tensor) else 0.0
    optimizer.step(closure=None)
    for group, rate in zip(optimizer.param_groups, rates):
        if "lr" in group:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


# --- models in FullyShardedDataParallel ---------------------------------------------------------------------


def _wrapper():
    from ..fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel


def is_wrapped(model):
    """Whether there is a FullyShardedDataParallel in the model."""
    return any(hasattr(m, "_fsdp_wrapped_module") for m in model.modules())


def _kind(options):
    from ..fsdp import StateDictType

    full = options.full_state_dict
    return StateDictType.FULL_STATE_DICT if full else StateDictType.SHARDED_STATE_DICT


def _plain(name):
    for prefix in _PREFIXES:
        name = name.replace(prefix, "") if not name.startswith(prefix) else name[len(prefix) :]
    return name


def wrapped_state(model, options):
    """The state with the plain model's names."""
    with _wrapper().state_dict_type(model, _kind(options)):
        state = model.state_dict()
    frozen = {_plain(name) for name, p in model.named_parameters() if not p.requires_grad}
    result = {_plain(name): value for name, value in state.items()}
    if options.ignore_frozen_params:
        result = {name: value for name, value in result.items() if name not in frozen}
    return {name: v.cpu() if options.cpu_offload else v for name, v in result.items()}


def load_wrapped(model, state, options):
    """Load a state with the plain model's names."""
    with _wrapper().state_dict_type(model, _kind(options)):
        names = {_plain(name): name for name in model.state_dict()}
        given = {names.get(name, name): value for name, value in state.items()}
        return model.load_state_dict(given, strict=options.strict)


def wrapped_optimizer_state(model, optimizers, options):
    """The optimizers' states by the plain model's names."""
    result: dict = {"state": {}, "param_groups": []}
    for optimizer in optimizers:
        make_state(optimizer)
        with _wrapper().state_dict_type(model, _kind(options)):
            state = _wrapper().optim_state_dict(model, optimizer)
        result["state"] |= {_plain(name): value for name, value in state["state"].items()}
        result["param_groups"] += [
            {**group, "params": [_plain(name) for name in group["params"]]} for group in state["param_groups"]
        ]
    return result


def load_wrapped_optimizer(model, optimizers, state):
    """Load states by the plain model's names."""
    for optimizer in optimizers:
        make_state(optimizer)
        named = _wrapper().optim_state_dict(model, optimizer)
        names = {_plain(name): name for group in named["param_groups"] for name in group["params"]}
        states = {names[name]: value for name, value in state["state"].items() if name in names}
        groups = []
        for group in named["param_groups"]:
            own = {_plain(name) for name in group["params"]}
            saved = next((g for g in state["param_groups"] if own & set(g["params"])), group)
            groups.append({**group, **{k: v for k, v in saved.items() if k != "params"}})
        loadable = _wrapper().optim_state_dict_to_load(
            model, optimizer, {"state": states, "param_groups": groups}
        )
        optimizer.load_state_dict(loadable)
