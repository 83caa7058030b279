"""Schedules made of others: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from rushlight._command.names import show_from
from rushlight.optim._schedule_base import LRScheduler, _set_lr
from rushlight.optim.optimizer import Optimizer


def _check_same_optimizer(name, optimizer, schedulers):
    for i, scheduler in enumerate(schedulers):
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )


def _undo_first_step(schedulers):
    for scheduler in schedulers:
        if hasattr(scheduler, "_schedulers"):
            _undo_first_step(scheduler._schedulers)
        else:
            scheduler.last_epoch -= 1


class _Composite(LRScheduler):
    """A schedule made of others, whose states it saves with its own."""

    _schedulers: Sequence[LRScheduler]

    def state_dict(self):
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        state = dict(state_dict)
        for scheduler, values in zip(self._schedulers, state.pop("_schedulers")):
            scheduler.load_state_dict(values)
        self.__dict__.update(state)


class SequentialLR(_Composite):
    """One schedule after the other, each from its milestone on.

    Args:
        optimizer (Optimizer): whose rates are set.
        schedulers (list): of this optimizer, in their order.
        milestones (list of int): epochs at which the next begins, one fewer than schedules.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Formula: lr of the schedule whose turn it is, counting its epochs from its milestone

    Raises: ValueError where schedules are of several optimizers, or the counts do not fit.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.SequentialLR(
        ...     optimizer,
        ...     [
        ...         torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=2),
        ...         torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5),
        ...     ],
        ...     milestones=[2],
        ... )
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [0.1, 0.1, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"SequentialLR at index {i} should have `optimizer` as its attribute, got {scheduler}."
                )
            if getattr(scheduler, "_takes_measure", False):
                raise ValueError(
                    "SequentialLR does not support `ReduceLROnPlateau` scheduler as it requires additional "
                    f"kwargs to be specified when calling `step`, but got one at index {i} in the given "
                    "schedulers sequence."
                )
        _check_same_optimizer("SequentialLR", optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number "
                f"of milestone points, but got number of schedulers {len(schedulers)} and the number of "
                f"milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each schedule changed the rate when it was made: back to the start, then only the first one acts.
        for group in optimizer.param_groups:
            _set_lr(group, group["initial_lr"])
        _undo_first_step(schedulers)
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Set the rates of the next epoch."""
        self.last_epoch += 1
        current = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[current]
        if current > 0 and self._milestones[current - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composite):
    """Several schedules at once, each acting on what the one before left.

    Args:
        schedulers (list): of one optimizer, in their order.
        optimizer (Optimizer, optional): theirs, where the list should be checked against it.

    Raises: ValueError where schedules are of several optimizers.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> warm_up = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=1)
        >>> decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> schedule = torch.optim.lr_scheduler.ChainedScheduler([warm_up, decay])
        >>> optimizer.step()
        >>> schedule.step()
        >>> optimizer.param_groups[0]["lr"]
        0.5
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained, but got no scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        for i, scheduler in enumerate(schedulers):
            if getattr(scheduler, "_takes_measure", False):
                raise ValueError(
                    "ChainedScheduler does not support `ReduceLROnPlateau` scheduler as it requires "
                    f"additional kwargs to be specified when calling `step`, but got one at index {i} in the "
                    "given schedulers sequence."
                )
        _check_same_optimizer("ChainedScheduler", optimizer, schedulers)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._note_lr()

    def step(self) -> None:  # type: ignore[override]
        """Step every schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._note_lr()


show_from("optim.lr_scheduler", SequentialLR, ChainedScheduler)
