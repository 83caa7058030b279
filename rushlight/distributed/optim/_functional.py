"""Optimizers that are given their gradients, instead of finding them in the parameters."""

from typing import Any

from rushlight._command.names import show_from

from ... import optim

__all__: list = []


class _FunctionalOptimizer:
    """An optimizer of `optimizer_class` whose `step` takes the gradients."""

    optimizer_class: type

    def __init__(self, params, *args, _allow_empty_param_list=False, **kwargs):
        params = list(params)
        if not params and not _allow_empty_param_list:
            raise ValueError("optimizer got an empty parameter list")
        self._params, self._options = params, (args, kwargs)
        self.optimizer: Any = self.optimizer_class(params, *args, **kwargs) if params else None

    @property
    def param_group(self):
        return self.optimizer.param_groups[0] if self.optimizer else {"params": []}

    @property
    def state(self):
        return self.optimizer.state if self.optimizer else {}

    def step(self, gradients):
        """A step with a gradient, or None, for each parameter."""
        if len(self._params) != len(gradients):
            raise ValueError(
                "the gradients passed in does not equal to the size of the parameters!"
                f"Params length: {len(self._params)}. Gradients length: {len(gradients)}"
            )
        before = [p.grad for p in self._params]
        for p, gradient in zip(self._params, gradients):
            p.grad = gradient
        self.optimizer.step()
        for p, gradient in zip(self._params, before):
            p.grad = gradient

    def step_param(self, param, grad):
        """A step of one parameter, known or new."""
        if self.optimizer is None or all(p is not param for p in self._params):
            self._add(param)
        gradients = [grad if p is param else None for p in self._params]
        self.step(gradients)

    def _add(self, param):
        self._params.append(param)
        if self.optimizer is None:
            args, kwargs = self._options
            self.optimizer = self.optimizer_class([param], *args, **kwargs)
        else:
            self.optimizer.param_groups[0]["params"].append(param)


def _functional(cls):
    return type(f"_Functional{cls.__name__}", (_FunctionalOptimizer,), {"optimizer_class": cls})


_FunctionalAdadelta = _functional(optim.Adadelta)
_FunctionalAdagrad = _functional(optim.Adagrad)
_FunctionalAdam = _functional(optim.Adam)
_FunctionalAdamW = _functional(optim.AdamW)
_FunctionalAdamax = _functional(optim.Adamax)
_FunctionalRMSprop = _functional(optim.RMSprop)
_FunctionalRprop = _functional(optim.Rprop)
_FunctionalSGD = _functional(optim.SGD)

functional_optim_map = {
    optim.Adadelta: _FunctionalAdadelta,
    optim.Adagrad: _FunctionalAdagrad,
    optim.Adam: _FunctionalAdam,
    optim.AdamW: _FunctionalAdamW,
    optim.Adamax: _FunctionalAdamax,
    optim.RMSprop: _FunctionalRMSprop,
    optim.Rprop: _FunctionalRprop,
    optim.SGD: _FunctionalSGD,
}


def register_functional_optim(key, optim):
    """Let `as_functional_optim(key)` give another class."""
    if key not in functional_optim_map:
        functional_optim_map[key] = optim


def as_functional_optim(optim_cls, *args, **kwargs):
    """An optimizer of the class without parameters, for `step_param`; ValueError for unknown classes."""
    if optim_cls not in functional_optim_map:
        raise ValueError(f"Optimizer {optim_cls} does not have a functional counterpart!")
    return functional_optim_map[optim_cls]([], *args, **kwargs, _allow_empty_param_list=True)


show_from("distributed.optim.utils", as_functional_optim)
