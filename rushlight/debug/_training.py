"""Mistakes of training loops that raise nothing and spoil the result."""

import warnings

import rushlight as torch
from rushlight import nn
from rushlight.debug._places import program_line
from rushlight.nn.modules.module import register_module_forward_pre_hook

__all__ = ["check_training"]


class check_training:
    """Warns, once each, of what a training loop should not do, while the context lasts.

    * an optimizer's step with gradients that were not reset since its last one (a forgotten `zero_grad`);
    * a step without any gradient (a forgotten `backward`, or the wrong parameters);
    * a step while the model is in evaluation mode;
    * `CrossEntropyLoss` of probabilities, `NLLLoss` of what are no logarithms, `BCEWithLogitsLoss` of
      probabilities.

    Args:
        model: the module that is trained.
        optimizer: its optimizer.

    >>> with rushlight.debug.check_training(model, optimizer):
    ...     train_one_epoch()
    """

    def __init__(self, model, optimizer):
        self._model = model
        self._optimizer = optimizer
        self._said = set()
        self._last = {}

    def __enter__(self):
        self._hooks = [
            self._optimizer.register_step_pre_hook(self._before_step),
            self._optimizer.register_step_post_hook(self._after_step),
            register_module_forward_pre_hook(self._before_forward),
        ]
        return self

    def __exit__(self, *exc):
        for hook in self._hooks:
            hook.remove()

    def _say(self, message):
        if message not in self._said:
            self._said.add(message)
            warnings.warn(f"{message} (at {program_line()})", stacklevel=2)

    def _parameters(self):
        return [p for group in self._optimizer.param_groups for p in group["params"]]

    def _before_step(self, optimizer, args, kwargs):
        parameters = self._parameters()
        if not any(p.grad is not None for p in parameters):
            self._say("step() without gradients: call loss.backward() first, on a loss of these parameters")
        if not self._model.training:
            self._say("step() of a model in evaluation mode: call model.train() before training")
        # Written to once more and never replaced: a backward pass has added to what the last step used.
        stale = [p for p in parameters if self._last.get(id(p)) == self._state(p) != (None, 0)]
        if stale:
            self._say(
                f"{len(stale)} gradients were not reset since the last step(), so they add up: "
                "call optimizer.zero_grad() before each backward()"
            )

    @staticmethod
    def _state(parameter, writes=0):
        grad = parameter.grad
        return (None, 0) if grad is None else (id(grad), grad._version + writes)

    def _after_step(self, optimizer, args, kwargs):
        self._kept = [p.grad for p in self._parameters()]  # so that no other tensor gets their ids
        self._last = {id(p): self._state(p, 1) for p in self._parameters()}

    def _before_forward(self, module, args):
        values = args[0] if args and isinstance(args[0], torch.Tensor) else None
        look = _LOSSES.get(type(module))
        if look is not None and values is not None and values.numel() and look[0](values.detach()):
            self._say(f"{type(module).__name__} {look[1]}")


def _sum_to_one(values):
    dim = 1 if values.dim() > 1 else 0
    return bool((values >= 0).all()) and bool((values.sum(dim) - 1).abs().max() < 1e-3)


def _are_probabilities(values):
    return values.numel() > 1 and bool(((values >= 0) & (values <= 1)).all())


# What a loss can tell of its input: (whether it is wrong, what to do).
_LOSSES = {
    nn.CrossEntropyLoss: (
        _sum_to_one,
        "takes logits, and these add up to one: leave softmax() out",
    ),
    nn.NLLLoss: (
        lambda values: bool((values > 0).any()),
        "takes logarithms of probabilities, and some are above zero: use log_softmax()",
    ),
    nn.BCEWithLogitsLoss: (
        _are_probabilities,
        "takes logits, and these are all between 0 and 1: leave sigmoid() out",
    ),
}
