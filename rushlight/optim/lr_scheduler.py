"""Learning-rate schedules."""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from rushlight import Tensor
from rushlight._command.names import show_from
from rushlight._errors.advice import advised
from rushlight.optim._composed_schedules import ChainedScheduler, SequentialLR
from rushlight.optim._cyclic_schedules import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from rushlight.optim._plateau_schedule import ReduceLROnPlateau
from rushlight.optim._schedule_base import (
    EPOCH_DEPRECATION_WARNING,  # noqa: F401
    LRScheduler,
    _check_optimizer,
    _LRScheduler,
    _per_group,  # noqa: F401
)
from rushlight.optim.optimizer import Optimizer

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class _LambdaSchedule(LRScheduler):
    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        _check_optimizer(optimizer)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != len(optimizer.param_groups):
                raise ValueError(
                    f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(lr_lambda)}"
                )
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * len(optimizer.param_groups)
        for function in self.lr_lambdas:
            if not callable(function):
                text = f"'{type(function).__name__}' object is not callable"
                raise advised(TypeError(f"{type(self).__name__}: lr_lambda: {text}"))
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """As for other schedules; of the functions, only objects with attributes are saved."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}
        functions = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
        state["lr_lambdas"] = [
            None if isinstance(f, functions) else dict(f.__dict__) for f in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict):
        """Take over what ``state_dict`` returned; functions stay."""
        state = dict(state_dict)
        for function, attributes in zip(self.lr_lambdas, state.pop("lr_lambdas")):
            if attributes is not None:
                function.__dict__.update(attributes)
        self.__dict__.update(state)


class LambdaLR(_LambdaSchedule):
    """The initial rate times a function of the epoch.

    Args:
        optimizer (Optimizer): whose rates are set.
        lr_lambda (callable or list): factor for an epoch; or one for each group.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Formula: lr = initial_lr * lr_lambda(epoch)

    Raises: ValueError where the list has not one function for each group.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.5, 0.25, 0.125]
    """

    def get_lr(self) -> list[float | Tensor]:
        self._current()
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_LambdaSchedule):
    """The rate before times a function of the epoch.

    Args:
        optimizer (Optimizer): whose rates are set.
        lr_lambda (callable or list): factor for an epoch; or one for each group.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Formula: lr = lr * lr_lambda(epoch)

    Raises: ValueError where the list has not one function for each group.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.5, 0.25, 0.125]
    """

    def get_lr(self) -> list[float | Tensor]:
        current = self._current()
        if self._is_initial:
            return current
        return [lr * f(self.last_epoch) for f, lr in zip(self.lr_lambdas, current)]


class StepLR(LRScheduler):
    """Multiplies the rate by `gamma` every `step_size` epochs.

    Args:
        optimizer (Optimizer): whose rates are set.
        step_size (int): epochs between the drops.
        gamma (float): factor of a drop.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Formula: lr = initial_lr * gamma ** (epoch // step_size)

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 1.0, 0.1, 0.1]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        current = self._current()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return current
        return [lr * self.gamma for lr in current]

    def _get_closed_form_lr(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the rate by `gamma` at each milestone.

    Args:
        optimizer (Optimizer): whose rates are set.
        milestones (iterable of int): epochs of the drops.
        gamma (float): factor of a drop.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Formula: lr = initial_lr * gamma ** (milestones <= epoch)

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.1)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.1, 0.1, 0.01]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        current = self._current()
        if self.last_epoch not in self.milestones:
            return current
        return [lr * self.gamma ** self.milestones[self.last_epoch] for lr in current]

    def _get_closed_form_lr(self):
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The rate times `factor` for the first `total_iters` epochs.

    Args:
        optimizer (Optimizer): whose rates are set.
        factor (float): from 0 to 1.
        total_iters (int): how many epochs.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Formula: lr = initial_lr * (factor if epoch < total_iters else 1)

    Raises: ValueError where `factor` is not between 0 and 1.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        current = self._current()
        if self.last_epoch == 0:
            return [lr * self.factor for lr in current]
        if self.last_epoch != self.total_iters:
            return current
        return [lr * (1.0 / self.factor) for lr in current]

    def _get_closed_form_lr(self):
        factor = self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """A factor that goes in a straight line, for a warm-up or the way down.

    Args:
        optimizer (Optimizer): whose rates are set.
        start_factor (float): factor at the first epoch.
        end_factor (float): factor from `total_iters` on.
        total_iters (int): how many epochs lie between.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Formula: lr = initial_lr * (start_factor + (end_factor - start_factor) * min(epoch / total_iters, 1))

    Raises: ValueError where a factor is out of range.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [0.25, 0.5, 0.75, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to 1."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        current = self._current()
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in current]
        if self._is_initial or self.last_epoch > self.total_iters:
            return current
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [lr * (1.0 + rise / before) for lr in current]

    def _get_closed_form_lr(self):
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * done
        return [base * factor for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the rate by `gamma` every epoch.

    Args:
        optimizer (Optimizer): whose rates are set.
        gamma (float): the factor.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Formula: lr = initial_lr * gamma**epoch

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.9, 0.81, 0.729]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        current = self._current()
        return current if self._is_initial else [lr * self.gamma for lr in current]

    def _get_closed_form_lr(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The rate falls to 0 as a power of what is left of `total_iters` epochs.

    Args:
        optimizer (Optimizer): whose rates are set.
        total_iters (int): how many epochs.
        power (float): of the fall.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Formula: lr = initial_lr * (1 - min(epoch, total_iters) / total_iters) ** power

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4, power=1.0)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.75, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        current = self._current()
        if self._is_initial or self.last_epoch > self.total_iters:
            return current
        left = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        factor = (left / before) ** self.power
        return [lr * factor for lr in current]

    def _get_closed_form_lr(self):
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate down in `T_max` epochs, and back (Loshchilov and Hutter 2017).

    Args:
        optimizer (Optimizer): whose rates are set.
        T_max (int): epochs of the way down.
        eta_min (float): the least rate.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Formula: lr = eta_min + (initial_lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.8536, 0.5, 0.1464]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        current = self._current()
        if self._is_initial or self.last_epoch == 0:  # a resumed optimizer has the rate where it was left
            return current
        if self._step_count == 1:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The step before was at the bottom, where the ratio of two cosines is not defined.
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - self.eta_min) * rise for lr, base in zip(current, self.base_lrs)]
        epoch, period, low = self.last_epoch, self.T_max, self.eta_min
        now, before = 1 + math.cos(math.pi * epoch / period), 1 + math.cos(math.pi * (epoch - 1) / period)
        return [now / before * (lr - low) + low for lr in current]

    def _get_closed_form_lr(self):
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


show_from(
    "optim.lr_scheduler",
    LRScheduler,
    _LRScheduler,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    OneCycleLR,
    ReduceLROnPlateau,
)
