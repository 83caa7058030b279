"""When models are averaged."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rushlight import distributed

from . import utils

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.distributed._process_group import ProcessGroup

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Averages parameters over a group when it sees fit; counts the steps in `step`."""

    def __init__(self, process_group: ProcessGroup | None = None) -> None:
        self.process_group = process_group or distributed.group.WORLD
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Any) -> None:
        """A step is over; `params` are parameters or groups of them."""


class PeriodicModelAverager(ModelAverager):
    """Averages after every `period` steps, except in the first `warmup_steps`."""

    def __init__(self, period, warmup_steps=0, process_group: ProcessGroup | None = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params: Any) -> None:
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
