"""Modules as functions of their parameters, in the form before `torch.func.functional_call`."""

import copy

import rushlight as torch

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]


def _call(module, names, tensors, args, kwargs):
    return torch.func.functional_call(module, dict(zip(names, tensors, strict=True)), args, kwargs)


class _Stateless(torch.nn.Module):
    """A module whose tensors are arguments: the structure is kept, on the meta device."""

    def __init__(
        self, stateless_model, param_names, buffer_names, param_names_map=None, buffer_names_map=None
    ):
        super().__init__()
        # Not registered: its tensors are no state of this module.
        self.__dict__["stateless_model"] = stateless_model
        self.param_names, self.buffer_names = param_names, buffer_names

    @classmethod
    def _create_from(cls, model, disable_autograd_tracking=False):
        params, buffers = dict(model.named_parameters()), dict(model.named_buffers())
        values = [
            tuple(t.detach().requires_grad_(t.requires_grad) for t in p.values()) for p in (params, buffers)
        ]
        if disable_autograd_tracking:
            values[0] = tuple(p.detach() for p in values[0])
        made = cls(copy.deepcopy(model).to("meta"), tuple(params), tuple(buffers))
        return (made, *values[: 2 if cls._takes_buffers else 1])


class FunctionalModule(_Stateless):
    """``module(params, *args)``."""

    _takes_buffers = False

    def forward(self, params, *args, **kwargs):
        return _call(self.stateless_model, self.param_names, params, args, kwargs)


class FunctionalModuleWithBuffers(_Stateless):
    """``module(params, buffers, *args)``."""

    _takes_buffers = True

    def forward(self, params, buffers, *args, **kwargs):
        names = (*self.param_names, *self.buffer_names)
        return _call(self.stateless_model, names, (*params, *buffers), args, kwargs)


def make_functional(model, disable_autograd_tracking=False):
    """A function of (params, *args), and the params; for models without buffers."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) "
            "instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """A function of (params, buffers, *args), the params and the buffers."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(models):
    """One function for several models of one kind, and their stacked parameters and buffers, for vmap."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    made = [make_functional_with_buffers(model) for model in models]
    function = made[0][0]
    stacks = [
        tuple(map(torch.stack, zip(*parts, strict=True))) for parts in list(zip(*made, strict=True))[1:]
    ]
    return function, *stacks
