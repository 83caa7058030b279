"""An optimizer's step on other parameters and state than its own."""

from collections import defaultdict
from contextlib import contextmanager

from rushlight._command.names import show_from

__all__ = ["swap_in_optimizer_params_and_state"]


def _check(optimizer, parameters, state):
    groups = state["param_groups"]
    if len(groups) != len(optimizer.param_groups):
        raise ValueError(
            f"swap_in_optimizer_params_and_state: the state has {len(groups)} parameter groups, "
            f"the optimizer {len(optimizer.param_groups)}"
        )
    total = 0
    for number, (mine, theirs) in enumerate(zip(optimizer.param_groups, groups)):
        total += len(mine["params"])
        if len(mine["params"]) != len(theirs["params"]):
            raise ValueError(
                f"swap_in_optimizer_params_and_state: group {number} has {len(theirs['params'])} parameters "
                f"in the state, {len(mine['params'])} in the optimizer"
            )
    if total != len(parameters):
        raise ValueError(
            f"swap_in_optimizer_params_and_state: got {len(parameters)} parameters, the optimizer has {total}"
        )


@contextmanager
def swap_in_optimizer_params_and_state(optimizer, swapin_parameters, swapin_optim_state):
    """Within the context the optimizer works on the given parameters, in the order of its own, and on a state
    as `state_dict()` gives it; afterwards on its own again. Only writes into the given tensors remain.

    Args:
        optimizer (Optimizer): whose parameters and state are replaced for a while.
        swapin_parameters (dict of Tensor): one for each of its parameters, by name.
        swapin_optim_state (dict): a state as `state_dict()` gives it.

    Raises: ValueError where the counts differ.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.5)
        >>> other = torch.nn.Parameter(torch.ones(1))
        >>> other.grad = torch.ones(1)
        >>> state = optimizer.state_dict()
        >>> with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, state):
        ...     optimizer.step()
        >>> other.data
        tensor([0.5000])
    """
    _check(optimizer, swapin_parameters, swapin_optim_state)
    own_state, own_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    tensors = iter(swapin_parameters.values())
    state = defaultdict(dict)
    try:
        for group, given in zip(optimizer.param_groups, swapin_optim_state["param_groups"]):
            params = [next(tensors) for _ in given["params"]]
            group.update({**given, "params": params})
            for tensor, number in zip(params, given["params"]):
                state[tensor] = dict(swapin_optim_state["state"].get(number, {}))
        optimizer.state = state
        yield
    finally:
        for group, own in zip(optimizer.param_groups, own_groups):
            group.clear()
            group.update(own)
        optimizer.state = own_state


show_from("optim", swap_in_optimizer_params_and_state)
