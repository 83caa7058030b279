"""Averages of models over training: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy

import rushlight
from rushlight import Tensor
from rushlight._errors.advice import advised
from rushlight.nn import Module
from rushlight.optim.lr_scheduler import LRScheduler, _check_optimizer, _per_group
from rushlight.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # the module typing is slow to load

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The rule of a moving average, for one tensor."""
    _check_decay(decay)

    @rushlight.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """The rule of a moving average, for lists of tensors in place."""
    _check_decay(decay)

    @rushlight.no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for ema, current in zip(ema_param_list, current_param_list):
            if ema.is_floating_point() or ema.is_complex():
                ema.lerp_(current, 1 - decay)
            else:
                ema.copy_(ema * decay + current * (1 - decay))

    return ema_update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The rule of a plain mean, for one tensor."""

    @rushlight.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """The rule of a plain mean, for lists of tensors in place."""

    @rushlight.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        weight = 1 / (float(num_averaged) + 1)
        for averaged, current in zip(averaged_param_list, current_param_list):
            if averaged.is_floating_point() or averaged.is_complex():
                averaged.lerp_(current, weight)
            else:
                averaged.add_(((current - averaged) * weight).to(averaged.dtype))

    return swa_update


class AveragedModel(rushlight.nn.Module):
    """A copy of a model whose parameters are averages; call ``update_parameters(model)`` after steps.

    Args:
        avg_fn: the rule for one tensor, of the average, the current value and the number averaged so far.
        multi_avg_fn: the rule for lists of tensors, in place.
        use_buffers: average buffers too; they are copied otherwise.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[Any, Any, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        if not isinstance(model, rushlight.nn.Module):
            raise advised(TypeError(f"AveragedModel: the model is no Module but {type(model).__name__}"))
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", rushlight.tensor(0, dtype=rushlight.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def _tensors(self, model):
        from itertools import chain

        return list(chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters())

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of the model into the average."""
        averages = [p.detach() for p in self._tensors(self.module)]
        current = [p.detach().to(a.device) for p, a in zip(self._tensors(model), averages)]
        if self.n_averaged == 0:
            for average, value in zip(averages, current):
                average.copy_(value)
        elif self.avg_fn is not None:
            for average, value in zip(averages, current):
                average.copy_(self.avg_fn(average, value, self.n_averaged.to(average.device)))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, current, self.n_averaged)
        if not self.use_buffers:
            for average, value in zip(self.module.buffers(), model.buffers()):
                average.detach().copy_(value.detach().to(average.device))
        self.n_averaged += 1


@rushlight.no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Run the data through the model once, so that its batch norms know their statistics."""
    from rushlight.nn.modules.batchnorm import _BatchNorm

    norms = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not norms:
        return
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for norm, momentum in norms.items():
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the rate as it is to ``swa_lr`` within ``anneal_epochs``, and constant from there."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        for group, lr in zip(optimizer.param_groups, _per_group("swa_lr", swa_lr, optimizer)):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch):
        """How much of the way is done at an epoch."""
        done = max(0, min(1, epoch / max(1, self.anneal_epochs)))
        return done if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * done)) / 2

    def get_lr(self) -> list[float | Tensor]:
        current = self._current()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group, lr in zip(self.optimizer.param_groups, current):
            # The rate to begin with, had it been annealed only by this schedule.
            start = group["swa_lr"] if before == 1 else (lr - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates
