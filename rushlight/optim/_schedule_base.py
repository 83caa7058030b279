"""What all schedules of the learning rate share."""

from __future__ import annotations

import weakref
from functools import wraps

import rushlight
from rushlight import Tensor
from rushlight._errors.advice import advised
from rushlight.optim._shared import StateDict
from rushlight.optim.optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. "
    "Please use `scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from "
    "None, the closed form is used instead of the new chainable form, where available. Please open an issue "
    "if you are unable to replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_ORDER = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


def _warn(text, kind=UserWarning):
    import warnings

    from rushlight._command.names import program_level

    warnings.warn(text, kind, stacklevel=program_level())


def _copied(value):
    """Tensor learning rates are copied, so that a note of one does not follow its changes."""
    return value.clone() if isinstance(value, rushlight.Tensor) else value


def _set_lr(group, value, key="lr"):
    if isinstance(group[key], rushlight.Tensor):
        group[key].fill_(value.item() if isinstance(value, rushlight.Tensor) else value)
    else:
        group[key] = value


def _check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise advised(TypeError(f"{type(optimizer).__name__} is not an Optimizer"))


def _per_group(name, value, optimizer):
    """An option as a list with one value per parameter group."""
    groups = optimizer.param_groups
    if not isinstance(value, (list, tuple)):
        return [_copied(value) for _ in groups]
    if len(value) != len(groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {len(groups)}."
        )
    return [_copied(v) for v in value]


class LRScheduler:
    """Base class of schedules: a subclass computes the rates in `get_lr`, mostly from the last step's.

    The form that goes from step to step lets several schedules act on one optimizer; where a subclass has
    `_get_closed_form_lr`, `step(epoch)` uses that.

    Args:
        optimizer (Optimizer): whose rates are set.
        last_epoch (int): the epoch to go on from; -1 starts, and notes each group's rate as 'initial_lr'.

    Raises: TypeError where `optimizer` is none; KeyError where epochs go on and a group has no 'initial_lr'.

    Example:
        >>> class HalfEachEpoch(torch.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [rate * 0.5**self.last_epoch for rate in self.base_lrs]
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedule = HalfEachEpoch(optimizer)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training "
                    "from "
                    "a checkpoint but haven't properly loaded the optimizer state\n2. You're using "
                    "last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> StateDict:
        """All values but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Take over what ``state_dict`` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[float | Tensor]:
        """The rates that the last step set, one per parameter group."""
        return self._last_lr

    def get_lr(self) -> list[float | Tensor]:
        """The rates for the current epoch; for subclasses to define."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch (or step, as the program counts).

        Args:
            epoch (int or None): deprecated: which epoch it is.

        Example:
            >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
            >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
            >>> optimizer.step()
            >>> scheduler.step()
            >>> scheduler.get_last_lr()
            [0.1]
        """
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            _warn(EPOCH_DEPRECATION_WARNING)
        self._update_lr(epoch)

    def _check_order(self):
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            _warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                "initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. "
                + _ORDER
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            _warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and "
                "later, you should call them in the opposite order: `optimizer.step()` before "
                "`lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the first value "
                "of the learning rate schedule. " + _ORDER
            )

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = closed() if closed else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._apply(values)

    def _apply(self, values):
        """Set the rates, and note them."""
        rates = []
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            if type(group["lr"]) is type(value) is float:
                group["lr"] = value
                rates.append(value)
            else:
                _set_lr(group, value)
                rates.append(_copied(group["lr"]))
        self._last_lr = rates

    def _note_lr(self):
        self._last_lr = self._rates()

    def _rates(self):
        rates = []
        for group in self.optimizer.param_groups:
            lr = group["lr"]
            rates.append(lr if type(lr) is float else _copied(lr))
        return rates

    def _current(self):
        """The rates as they are; with a warning where ``get_lr`` was not called by ``step``."""
        if not self._get_lr_called_within_step:
            _warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")
        return self._rates()


class _LRScheduler(LRScheduler):
    """The older name."""


def _watch_steps(optimizer):
    """Note on the optimizer that its ``step`` was called, to warn about the wrong order."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    step, ref = optimizer.step.__func__, weakref.ref(optimizer)

    @wraps(step)
    def wrapper(*args, **kwargs):
        optimizer = ref()
        optimizer._opt_called = True
        return step.__get__(optimizer, type(optimizer))(*args, **kwargs)

    wrapper._wrapped_by_lr_sched = True
    optimizer.step = wrapper
