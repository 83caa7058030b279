"""Levels that a function of the step gives."""

from rushlight.ao.pruning._counting import warn_of_direct_call

from .base_scheduler import BaseScheduler

__all__ = ["LambdaSL"]


class LambdaSL(BaseScheduler):
    """Multiplies the levels that the sparsifier had by a function of the step.

    Args:
        sparsifier: whose levels are set.
        sl_lambda: a function of the step's number, or one for each group.
        last_epoch: the step before the first one.
        verbose: whether to print each level.

    Example::

        >>> model = torch.nn.Sequential(torch.nn.Linear(8, 2))
        >>> sparsifier = torch.ao.pruning.WeightNormSparsifier(sparsity_level=0.5)
        >>> sparsifier.prepare(model, config=None)
        >>> scheduler = torch.ao.pruning.LambdaSL(sparsifier, lambda epoch: epoch / 10)
        >>> sparsifier.step()
        >>> scheduler.step()
        >>> scheduler.get_last_sl()
        [0.05]
    """

    def __init__(self, sparsifier, sl_lambda, last_epoch=-1, verbose=False):
        self.sparsifier = sparsifier
        count = len(sparsifier.groups)
        if not isinstance(sl_lambda, (list, tuple)):
            self.sl_lambdas = [sl_lambda] * count
        elif len(sl_lambda) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(sl_lambda)}")
        else:
            self.sl_lambdas = list(sl_lambda)
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self):
        if not self._get_sl_called_within_step:
            warn_of_direct_call()
        return [
            base * factor(self.last_epoch)
            for factor, base in zip(self.sl_lambdas, self.base_sl, strict=False)
        ]
