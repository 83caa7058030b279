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
    as ``state_dict()`` gives it; afterwards on its own again. Only writes into the given tensors remain."""
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
