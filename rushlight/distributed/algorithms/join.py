"""Training whose processes run out of inputs at different times: those done shadow the collectives."""

import warnings
from abc import ABC, abstractmethod

import rushlight as torch
from rushlight import distributed

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process that is done does for a `Joinable`."""

    def main_hook(self):
        """Runs once for each iteration of the processes that are not done."""

    def post_hook(self, is_last_joiner):
        """Runs once when all are done."""


class Joinable(ABC):
    """Something whose iterations communicate, and that can be shadowed."""

    def __init__(self):
        super().__init__()
        self._join_config = None

    @abstractmethod
    def join_hook(self, **kwargs):
        """The `JoinHook`; keyword arguments are those of the `Join`."""

    @property
    @abstractmethod
    def join_device(self):
        """The device of the count of processes."""

    @property
    @abstractmethod
    def join_process_group(self):
        """The group that iterates."""


class Join:
    """Inside, processes may stop iterating at different times.

    Args:
        joinables: what communicates in each iteration; the first one has to call `notify_join_context`.
        enable: False makes this nothing.
        throw_on_early_termination: raise everywhere as soon as one process is done.
    """

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable, self._throw = joinables, enable, throw_on_early_termination
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        for i, joinable in enumerate(joinables):
            joinable._join_config = (enable, throw_on_early_termination, i == 0)
        first = joinables[0]
        self._device, self._group = first.join_device, first.join_process_group

    def __enter__(self):
        return self

    def _waiting(self):
        """How many processes still iterate; each of those takes part from `notify_join_context`."""
        count = torch.zeros(1, device=self._device)
        distributed.all_reduce(count, group=self._group)
        return int(count.item())

    def __exit__(self, kind, value, traceback):
        if not self._enable or kind is not None:
            return
        rounds = 0
        while self._waiting():
            if self._throw:
                raise RuntimeError(f"Rank {distributed.get_rank(self._group)} exhausted all inputs.")
            for hook in self._hooks:
                hook.main_hook()
            rounds += 1
            if rounds == 1000:
                warnings.warn("Detected uneven input skew of more than 1000 iterations.", stacklevel=2)
        last = rounds == 0
        for hook in self._hooks:
            hook.post_hook(last)

    @staticmethod
    def notify_join_context(joinable):
        """Tell the processes that are done that this one begins an iteration."""
        if joinable._join_config is None:
            return None
        enabled, throws, first = joinable._join_config
        if not (enabled and first):
            return None
        device, group = joinable.join_device, joinable.join_process_group
        count = torch.ones(1, device=device)
        if not throws:
            return distributed.all_reduce(count, group=group, async_op=True)
        distributed.all_reduce(count, group=group)
        if count.item() < distributed.get_world_size(group):
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return None
