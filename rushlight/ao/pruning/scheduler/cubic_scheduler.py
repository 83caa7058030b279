"""Levels that grow fast at first and slowly at the end."""

from rushlight.ao.pruning._counting import warn_of_direct_call

from .base_scheduler import BaseScheduler

__all__ = ["CubicSL"]


class CubicSL(BaseScheduler):
    r"""Goes from a first level :math:`s_0` to the sparsifier's own, :math:`s_f`, by a cube of the steps left.

    .. math::
        s_t = s_f + (s_0 - s_f) \left(1 - \frac{t - t_0}{n \Delta t}\right)^3

    All but ``last_epoch`` and ``verbose`` may be lists, one value for each group.

    Args:
        sparsifier: whose levels are set.
        init_sl: the first level, :math:`s_0`.
        init_t: the step at which pruning starts, :math:`t_0`.
        delta_t: steps between changes, :math:`\Delta t`.
        total_t: number of changes, :math:`n`.
        initially_zero: whether the level is 0 before ``init_t``, instead of ``init_sl``.
        last_epoch: the step before the first one.
        verbose: whether to print each level.

    Example::

        >>> model = torch.nn.Sequential(torch.nn.Linear(8, 2))
        >>> sparsifier = torch.ao.pruning.WeightNormSparsifier(sparsity_level=0.8)
        >>> sparsifier.prepare(model, config=None)
        >>> scheduler = torch.ao.pruning.CubicSL(sparsifier, delta_t=1, total_t=2)
        >>> sparsifier.step()
        >>> scheduler.step()
        >>> round(scheduler.get_last_sl()[0], 6)
        0.7
    """

    def __init__(
        self,
        sparsifier,
        init_sl=0.0,
        init_t=0,
        delta_t=10,
        total_t=100,
        initially_zero=False,
        last_epoch=-1,
        verbose=False,
    ):
        self.sparsifier = sparsifier
        self.init_sl = self._make_sure_a_list(init_sl)
        self.init_t = self._make_sure_a_list(init_t)
        self.delta_t = self._make_sure_a_list(delta_t)
        self.total_t = self._make_sure_a_list(total_t)
        self.initially_zero = self._make_sure_a_list(initially_zero)
        super().__init__(sparsifier, last_epoch, verbose)

    @staticmethod
    def sparsity_compute_fn(s_0, s_f, t, t_0, dt, n, initially_zero=False):
        """The level of step ``t``, by the formula of the class."""
        if initially_zero and t < t_0:
            return 0
        level = s_f + (s_0 - s_f) * (1.0 - (t - t_0) / (dt * n)) ** 3
        return max(s_0, min(s_f, level))

    def get_sl(self):
        if not self._get_sl_called_within_step:
            warn_of_direct_call()
        settings = (self.init_sl, self.base_sl, self.init_t, self.delta_t, self.total_t, self.initially_zero)
        return [
            self.sparsity_compute_fn(first, last, self.last_epoch, start, every, count, zero)
            for first, last, start, every, count, zero in zip(*settings, strict=False)
        ]
