"""What schedulers of data sparsifiers share."""

import abc

from rushlight.ao.pruning._counting import counted, warn_of_order
from rushlight.ao.pruning._experimental.data_sparsifier import BaseDataSparsifier

__all__ = ["BaseDataScheduler"]


class BaseDataScheduler:
    """Base of schedulers: ``step`` gives one setting of each data of a sparsifier the value of this step.

    A subclass computes the values in ``get_schedule_param``.

    Args:
        data_sparsifier: whose settings change.
        schedule_param: the name of the setting.
        last_epoch: the step before the first one.
        verbose: whether to print each value.
    """

    def __init__(self, data_sparsifier, schedule_param, last_epoch=-1, verbose=False):
        if not isinstance(data_sparsifier, BaseDataSparsifier):
            raise TypeError(
                f"{type(data_sparsifier).__name__} is not an instance of torch.ao.pruning.BaseDataSparsifier"
            )
        self.data_sparsifier = data_sparsifier
        self.schedule_param = schedule_param
        self.base_param = self._current()
        self.last_epoch = last_epoch
        data_sparsifier.step = counted(data_sparsifier.step)
        data_sparsifier._step_count = 0
        self._step_count = 0
        self.verbose = verbose
        self._get_sp_called_within_step = False
        self.step()

    def _current(self):
        groups = self.data_sparsifier.data_groups
        return {name: settings.get(self.schedule_param) for name, settings in groups.items()}

    @abc.abstractmethod
    def get_schedule_param(self):
        """A dict from the names of data to the values for this step."""
        raise NotImplementedError

    def __repr__(self):
        return (
            f"{type(self).__name__} (\nData Sparsifier {self.data_sparsifier}\n"
            f"    {self.schedule_param}: {self.base_param}\n)"
        )

    def state_dict(self):
        """All that the scheduler has but the sparsifier, whose state is its own."""
        return {key: value for key, value in self.__dict__.items() if key != "data_sparsifier"}

    def load_state_dict(self, state_dict):
        """Take what ``state_dict()`` returned."""
        self.__dict__.update(state_dict)

    def get_last_param(self):
        """The values that the last step set, by the names of data."""
        return self._last_param

    def step(self):
        """Set the values of the next step; call it after the sparsifier's step."""
        if self._step_count == 1:
            warn_of_order(self.data_sparsifier, "data_sparsifier")
        self._step_count += 1
        self._get_sp_called_within_step = True
        try:
            self.last_epoch += 1
            values = self.get_schedule_param()
        finally:
            self._get_sp_called_within_step = False
        for name, value in values.items():
            self.data_sparsifier.data_groups[name][self.schedule_param] = value
            if self.verbose:
                print(f"Adjusting {self.schedule_param} for group {name} to {value}")
        self._last_param = self._current()
        self.data_sparsifier.enable_mask_update = True
