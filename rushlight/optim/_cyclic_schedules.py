"""Schedules that go up and down again, some with the momentum moving the other way."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from rushlight import Tensor
from rushlight._errors.advice import advised
from rushlight.optim._schedule_base import (
    LRScheduler,
    _check_optimizer,
    _per_group,
    _set_lr,
)
from rushlight.optim._shared import StateDict
from rushlight.optim.optimizer import Optimizer


class _WithMomentum(LRScheduler):
    """A schedule of rate and momentum; Adam's first beta counts as momentum."""

    def _check_momentum(self, optimizer):
        defaults = optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in defaults

    def _set_momentum(self, group, value):
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_WithMomentum):
    """The rate goes up and down between two bounds (Smith 2017), and the momentum the other way.

    Args:
        optimizer (Optimizer): whose rates are set.
        base_lr (float or list): the lower bound; or one for each group.
        max_lr (float or list): the upper bound.
        step_size_up (int): steps of the way up.
        step_size_down (int, optional): steps of the way down; None: as many.
        mode (str): 'triangular', 'triangular2' (half the height each cycle) or 'exp_range' (gamma**step).
        gamma (float): for 'exp_range'.
        scale_fn (callable, optional): height for a cycle or a step, in place of `mode`.
        scale_mode (str): whether `scale_fn` gets the 'cycle' or the count of 'iterations'.
        cycle_momentum (bool): whether momentum (or betas[0]) goes down as the rate goes up.
        base_momentum, max_momentum (float or list): its bounds.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Formula: lr = base_lr + (max_lr - base_lr) * height, height a triangle wave times the scale

    Raises: ValueError where `mode` is another, or momentum should cycle and the optimizer has none.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.CyclicLR(
        ...     optimizer, base_lr=0.1, max_lr=0.5, step_size_up=2, cycle_momentum=False
        ... )
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [0.1, 0.3, 0.5, 0.3]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _per_group("base_lr", base_lr, optimizer)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs):
                _set_lr(group, lr)
        self.max_lrs = _per_group("max_lr", max_lr, optimizer)
        down = float(step_size_up if step_size_down is None else step_size_down)
        self.total_size = float(step_size_up) + down
        self.step_ratio = float(step_size_up) / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = "iterations" if scale_fn is None and mode == "exp_range" else scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum(optimizer)
            self.base_momentums = _per_group("base_momentum", base_momentum, optimizer)
            self.max_momentums = _per_group("max_momentum", max_momentum, optimizer)
            if last_epoch == -1:
                for group, high, low in zip(optimizer.param_groups, self.max_momentums, self.base_momentums):
                    self._set_momentum(group, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        return (self._scale_fn_custom or self._scale_fn_ref)(x)

    @property
    def _scale_fn_ref(self):
        """The function that ``mode`` names."""
        if self.mode == "triangular2":
            return self._triangular2_scale_fn
        if self.mode == "exp_range":
            return partial(self._exp_range_scale_fn, self.gamma)
        return self._triangular_scale_fn

    @staticmethod
    def _triangular_scale_fn(x):
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x):
        return 1 / (2.0 ** (x - 1))

    @staticmethod
    def _exp_range_scale_fn(gamma, x):
        return gamma**x

    def get_lr(self) -> list[float | Tensor]:
        self._current()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            rows = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums)
            for group, low, high in rows:
                self._set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> StateDict:
        """All values but the optimizer; of ``scale_fn`` only the attributes of an object."""
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        has_state = function is not None and not hasattr(function, "__code__")
        state["_scale_fn_custom"] = dict(function.__dict__) if has_state else None
        return state

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Take over what ``state_dict`` returned; the function stays."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom")
        super().load_state_dict(state)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down, then from the top again (SGDR, Loshchilov and Hutter 2017).

    Args:
        optimizer (Optimizer): whose rates are set.
        T_0 (int): epochs of the first way down.
        T_mult (int): how many times as long each is as the one before.
        eta_min (float): the least rate.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Formula: lr = eta_min + (initial_lr - eta_min) * (1 + cos(pi * t / T)) / 2, t epochs after a restart

    Raises: ValueError where `T_0` or `T_mult` is no integer above 0.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 0.5, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        self._current()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Set the rates of the next epoch; a fractional ``epoch`` places batches within one."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            values = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._apply(values)

    def _jump(self, epoch):
        """The place within a period, and the period's length, at any epoch."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n


class OneCycleLR(_WithMomentum):
    """One cycle: up to the largest rate, then far below the first one (Smith and Topin 2018); a step a batch.

    Args:
        optimizer (Optimizer): whose rates are set.
        max_lr (float or list): the largest rate; or one for each group.
        total_steps (int, optional): steps in all; else `epochs` times `steps_per_epoch`.
        epochs (int, optional): see above.
        steps_per_epoch (int, optional): see above.
        pct_start (float): part of the steps that go up.
        anneal_strategy (str): 'cos' or 'linear'.
        cycle_momentum (bool): whether momentum (or betas[0]) goes the other way.
        base_momentum, max_momentum (float or list): its bounds.
        div_factor (float): max_lr over the first rate.
        final_div_factor (float): the first rate over the last.
        three_phase (bool): whether the way back to the first rate is a phase of its own.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Formula: lr from max_lr / div_factor to max_lr and down to max_lr / div_factor / final_div_factor

    Raises: ValueError where the count of steps is unknown or exceeded, or an option is out of its range.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.OneCycleLR(
        ...     optimizer, max_lr=1.0, total_steps=4, cycle_momentum=False
        ... )
        >>> rates = []
        >>> for epoch in range(3):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [0.04, 0.8117, 0.2831]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = self._phases(pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        highest = _per_group("max_lr", max_lr, optimizer)
        if last_epoch == -1:
            for group, high in zip(optimizer.param_groups, highest):
                group["initial_lr"] = high / div_factor
                group["max_lr"] = high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum(optimizer)
            high = _per_group("max_momentum", max_momentum, optimizer)
            low = _per_group("base_momentum", base_momentum, optimizer)
            if last_epoch == -1:
                for group, high_m, low_m in zip(optimizer.param_groups, high, low):
                    self._set_momentum(group, high_m)
                    group["max_momentum"], group["base_momentum"] = high_m, low_m
        super().__init__(optimizer, last_epoch)

    def _phases(self, pct_start, three_phase):
        top = float(pct_start * self.total_steps) - 1
        last = self.total_steps - 1
        up = (top, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if three_phase:
            rows = [
                up,
                (2 * top, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (last, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            rows = [up, (last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        return [dict(zip(names, row)) for row in rows]

    def _anneal_func(self, start, end, pct):
        if not hasattr(self, "_anneal_func_type"):
            return self.anneal_func(start, end, pct)  # files of older versions hold the function itself
        return (self._annealing_cos if self._anneal_func_type == "cos" else self._annealing_linear)(
            start, end, pct
        )

    @staticmethod
    def _annealing_cos(start, end, pct):
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start, end, pct):
        return (end - start) * pct + start

    def get_lr(self) -> list[float | Tensor]:
        self._current()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        rates = []
        for group in self.optimizer.param_groups:
            begin = 0.0
            for i, phase in enumerate(self._schedule_phases):
                end = phase["end_step"]
                if step <= end or i == len(self._schedule_phases) - 1:
                    break
                begin = end
            done = (step - begin) / (end - begin)
            rates.append(self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], done))
            if self.cycle_momentum:
                start, stop = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal_func(start, stop, done))
        return rates


def _total_steps(total_steps, epochs, steps_per_epoch):
    if total_steps is not None:
        given = {"total_steps": total_steps}
    elif epochs is not None and steps_per_epoch is not None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    else:
        raise advised(ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)"))
    for name, value in given.items():
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())
