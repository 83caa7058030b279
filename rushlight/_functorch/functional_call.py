"""Modules as functions of their parameters."""

import rushlight
from rushlight import nn
from rushlight._command.names import show_from

__all__ = ["functional_call", "stack_module_state"]


def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """Call ``module`` with the given tensors in place of its parameters and buffers of those names.

    Args:
        parameter_and_buffer_dicts: a dictionary, or several without a name in common.
        tie_weights: parameters that share a tensor in the module share the given one.
        strict: all parameters and buffers must be given, and no others.
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
    """The parameters and the buffers of several models of one class, each stacked: what ``vmap`` of a
    ``functional_call`` takes for an ensemble."""
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
