"""DistributedDataParallel among processes that run out of inputs at different times.

In each iteration the processes with inputs say that they go on, and whether gradients will be averaged; those
without make the same collectives, with gradients of zero. In the end all get the parameters of one that ran
longest.
"""

from .. import Tensor, tensor
from ._reduce_op import ReduceOp
from .algorithms.join import Join, JoinHook


class InTurn:
    """What a process says at the beginning of an iteration, and what it learns of the others."""

    def __init__(self, ddp, divides_by_all):
        self.ddp, self.divides_by_all = ddp, divides_by_all
        self.active = True

    def _reduced(self, value, op) -> Tensor:
        number = tensor([value])
        self.ddp.process_group.engine.all_reduce([number], op)
        return number

    def begin(self, syncs):
        """A process with inputs begins a forward pass."""
        work = Join.notify_join_context(self.ddp)
        if work is not None:
            work.wait()
        self._agree(syncs)

    def _agree(self, syncs):
        """Returns whether this iteration averages gradients; sets what sums are divided by."""
        size = self.ddp.process_group.size()
        votes = int(self._reduced(int(syncs) + (size + 1) * int(self.active), ReduceOp.SUM).item())
        active, syncing = divmod(votes, size + 1)
        self.ddp.reducer.divisor = None if self.divides_by_all else active
        return syncing > 0

    def common_rank(self, candidate):
        """The highest rank of those that are candidates."""
        group = self.ddp.process_group
        return int(self._reduced(group.rank() if candidate else -1, ReduceOp.MAX).item())


class DDPJoinHook(JoinHook):
    """What a process without inputs does."""

    def __init__(self, ddp):
        self.ddp = ddp

    def main_hook(self):
        turn, ddp = self.ddp._join, self.ddp
        turn.active = False
        if not turn._agree(False):
            return
        if ddp._shares_buffers():
            ddp._give_out(ddp.modules_buffers, turn.common_rank(False))
        ddp.reducer.shadow()

    def post_hook(self, is_last_joiner):
        ddp, turn = self.ddp, self.ddp._join
        root = turn.common_rank(is_last_joiner)
        ddp._give_out([p.detach() for p in ddp.module.parameters()] + ddp.modules_buffers, root)
        ddp.reducer.divisor, ddp._join = None, None
