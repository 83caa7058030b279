"""Modules as functions of their parameters, in the form before `torch.func.functional_call`."""

import copy

import rushlight as torch

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functional_init",
    "functional_init_with_buffers",
    "make_functional",
    "make_functional_with_buffers",
]


def _call(module, names, ties, tensors, args, kwargs):
    state = dict(zip(names, tensors, strict=True))
    state |= {other: state[name] for other, name in ties.items()}
    return torch.func.functional_call(module, state, args, kwargs)


def _ties(model):
    """The other names of tensors that have several: name -> the first one. Copies on meta are not tied."""
    ties = {}
    for tensors in (model.named_parameters, model.named_buffers):
        first = {t: name for name, t in tensors()}
        ties |= {name: first[t] for name, t in tensors(remove_duplicate=False) if first[t] != name}
    return ties


class _Stateless(torch.nn.Module):
    """A module whose tensors are arguments: the structure is kept, on the meta device."""

    def __init__(
        self, stateless_model, param_names, buffer_names, param_names_map=None, buffer_names_map=None
    ):
        super().__init__()
        # Not registered: its tensors are no state of this module.
        self.__dict__["stateless_model"] = stateless_model
        self.param_names, self.buffer_names = param_names, buffer_names
        self.__dict__["ties"] = {}

    @classmethod
    def _create_from(cls, model, disable_autograd_tracking=False):
        params, buffers = dict(model.named_parameters()), dict(model.named_buffers())
        values = [
            tuple(t.detach().requires_grad_(t.requires_grad) for t in p.values()) for p in (params, buffers)
        ]
        if disable_autograd_tracking:
            values[0] = tuple(p.detach() for p in values[0])
        made = cls(copy.deepcopy(model).to("meta"), tuple(params), tuple(buffers))
        made.__dict__["ties"] = _ties(model)
        return (made, *values[: 2 if cls._takes_buffers else 1])


class FunctionalModule(_Stateless):
    """``module(params, *args)``."""

    _takes_buffers = False

    def forward(self, params, *args, **kwargs):
        return _call(self.stateless_model, self.param_names, self.ties, params, args, kwargs)


class FunctionalModuleWithBuffers(_Stateless):
    """``module(params, buffers, *args)``."""

    _takes_buffers = True

    def forward(self, params, buffers, *args, **kwargs):
        names = (*self.param_names, *self.buffer_names)
        return _call(self.stateless_model, names, self.ties, (*params, *buffers), args, kwargs)


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
    models = list(models)
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to have the same training/eval mode."
        )
    if not all(type(model) is type(models[0]) for model in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    made = [make_functional_with_buffers(model) for model in models]
    function = made[0][0]
    stacks = [
        tuple(map(torch.stack, zip(*parts, strict=True))) for parts in list(zip(*made, strict=True))[1:]
    ]
    return function, *stacks


def _initializer(make, model_class, ensemble_shape, device):
    """What makes a model, or an ensemble of it, of the class's arguments: its stacked tensors, then the
    function of them and the names."""
    if len(ensemble_shape) > 1:
        raise ValueError("NYI: ensemble_shape with more than 1 element")

    def init(*args, **kwargs):
        count = ensemble_shape[0] if ensemble_shape else 1
        if count <= 0:
            raise ValueError(f"num_models {count} should be > 0")
        made = [make(model_class(*args, **kwargs).to(device)) for _ in range(count)]
        module = made[0][0]
        tensors = [
            tuple(map(torch.stack, zip(*parts, strict=True))) if ensemble_shape else parts[0]
            for parts in list(zip(*made, strict=True))[1:]
        ]
        names = [module.param_names, module.buffer_names][: len(tensors)]

        def call(*state_and_args):
            *state, given = state_and_args
            return module(*state, *given)

        return (*tensors, call, *names)

    return init


def functional_init(model_class, ensemble_shape=(), device="cpu"):
    """A function of the class's arguments that gives (weights, fn, names); ``fn(weights, args)``."""
    return _initializer(make_functional, model_class, ensemble_shape, device)


def functional_init_with_buffers(model_class, ensemble_shape=(), device="cpu"):
    """The same of models with buffers: (weights, buffers, fn, weight_names, buffer_names)."""
    return _initializer(make_functional_with_buffers, model_class, ensemble_shape, device)
