"""Modules as functions of their parameters."""

import rushlight
from rushlight import nn
from rushlight._command.names import show_from

__all__ = ["functional_call", "stack_module_state"]

__capture__ = "traced"  # Note [Capture marks]


def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """Calls a module with given tensors in place of its parameters and buffers.

    Args:
        module (Module): what is called.
        parameter_and_buffer_dicts (dict or tuple of dicts): tensors by name; no name in two of them.
        args (tuple or value, optional): positional arguments.
        kwargs (dict, optional): arguments by name.
        tie_weights (bool): whether parameters that share a tensor in the module share the given one.
        strict (bool): whether all parameters and buffers must be given, and no others.

    Returns: what the module returns.

    Raises: TypeError where the dicts are none; ValueError where tied names differ; RuntimeError where
        `strict` is not met.

    Example:
        >>> layer = torch.nn.Linear(2, 1, bias=False)
        >>> torch.func.functional_call(layer, {"weight": torch.ones(1, 2)}, torch.ones(3, 2)).shape
        torch.Size([3, 1])
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        state = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, (list, tuple)):
        state = _merged(parameter_and_buffer_dicts)
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    return nn.utils.stateless._functional_call(
        module, state, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _merged(dicts):
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    state, repeated = {}, set()
    for d in dicts:
        repeated |= state.keys() & d.keys()
        state.update(d)
    if repeated:
        raise ValueError(
            f"{sorted(repeated)} appeared in multiple dictionaries; behavior of functional call is ambiguous"
        )
    return state


def stack_module_state(models):
    """The parameters and the buffers of models of one class, each stacked, as `vmap` of a `functional_call`
    takes them.

    Args:
        models (list of Module): of one class and size, all in training or none.

    Returns: (parameters, buffers), dicts of tensors with a new first dimension.

    Raises: RuntimeError where models differ in class or mode, or there are none.

    Example:
        >>> models = [torch.nn.Linear(2, 1) for _ in range(3)]
        >>> parameters, buffers = torch.func.stack_module_state(models)
        >>> run = lambda p, x: torch.func.functional_call(models[0], p, x)
        >>> torch.func.vmap(run, (0, None))(parameters, torch.ones(4, 2)).shape
        torch.Size([3, 4, 1])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = {
        name: _stacked_leaf([dict(m.named_parameters())[name] for m in models])
        for name, _ in models[0].named_parameters()
    }
    buffers = {
        name: _stacked_leaf([dict(m.named_buffers())[name] for m in models])
        for name, _ in models[0].named_buffers()
    }
    return parameters, buffers


def _stacked_leaf(tensors):
    """All leaves: a new leaf. Otherwise the stack stays part of the graph."""
    leaves = {t.is_leaf for t in tensors}
    if len(leaves) != 1:
        raise RuntimeError(
            f"Expected {tensors} to have either all leaf or all non-leaf tensors; got a mix of both"
        )
    if not leaves.pop():
        return rushlight.stack(tensors)
    requires = {t.requires_grad for t in tensors}
    if len(requires) != 1:
        raise RuntimeError(f"Expected {tensors} to have the same .requires_grad")
    return rushlight.stack(tensors).detach().requires_grad_(requires.pop())


show_from("func", functional_call, stack_module_state)
