"""What all schedulers of sparsity levels share."""

from rushlight.ao.pruning._counting import counted, warn_of_direct_call, warn_of_order
from rushlight.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["BaseScheduler"]


class BaseScheduler:
    """Base of schedulers: ``step`` gives each group of a sparsifier the level that ``get_sl`` says.

    Args:
        sparsifier: whose levels are set.
        last_epoch: the step before the first one.
        verbose: whether to print each level.
    """

    def __init__(self, sparsifier, last_epoch=-1, verbose=False):
        if not isinstance(sparsifier, BaseSparsifier):
            raise TypeError(
                f"{type(sparsifier).__name__} is not an instance of torch.ao.pruning.BaseSparsifier"
            )
        self.sparsifier = sparsifier
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        self.last_epoch = last_epoch
        sparsifier.step = counted(sparsifier.step)
        sparsifier._step_count = 0
        self._step_count = 0
        self.verbose = verbose
        self._get_sl_called_within_step = False
        self.step()

    def state_dict(self):
        """All that the scheduler has but the sparsifier."""
        return {key: value for key, value in self.__dict__.items() if key != "sparsifier"}

    def load_state_dict(self, state_dict):
        """Take what ``state_dict()`` returned."""
        self.__dict__.update(state_dict)

    def get_last_sl(self):
        """The levels that the last step set."""
        return self._last_sl

    def get_sl(self):
        """The levels for this step; a subclass computes them from ``base_sl`` and ``last_epoch``."""
        if not self._get_sl_called_within_step:
            warn_of_direct_call()
        raise NotImplementedError

    def print_sl(self, is_verbose, group, sl, epoch=None):
        """Print the level of a group."""
        if is_verbose:
            start = "Adjusting" if epoch is None else f"Epoch {epoch:5d}: adjusting"
            print(f"{start} sparsity level of group {group} to {sl:.4e}.")

    def __repr__(self):
        return f"{type(self).__name__} (\nSparsifier {self.sparsifier}\n    base_sl: {self.base_sl}\n)"

    def step(self, epoch=None):
        """Set the levels of the next step; call it after the sparsifier's step."""
        if self._step_count == 1:
            warn_of_order(self.sparsifier, "sparsifier")
        self._step_count += 1
        self._get_sl_called_within_step = True
        try:
            self.last_epoch += 1
            levels = self.get_sl()
        finally:
            self._get_sl_called_within_step = False
        groups = self.sparsifier.groups
        for number, (group, level) in enumerate(zip(groups, levels, strict=False)):
            group["sparsity_level"] = level
            self.print_sl(self.verbose, number, level, epoch)
        self._last_sl = [group["sparsity_level"] for group in groups]
        self.sparsifier.enable_mask_update = True

    def _make_sure_a_list(self, var):
        count = len(self.sparsifier.groups)
        if not isinstance(var, (list, tuple)):
            return [var] * count
        if len(var) != count:
            raise ValueError(f"Expected variable of length {count}, but got {len(var)}")
        return list(var)
