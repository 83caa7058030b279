"""The order of DualPipeV: of a process's two stages one goes forward while the other goes back.

Source: DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 3.2.1 (DualPipe); a process holds the
stages `rank` and `last - rank`, so that the first process has the loss.
"""

from collections import deque
from itertools import count

__all__ = ["dual_pipe_order"]


def dual_pipe_order(rank, ranks, microbatches):
    """[(kind, which stage, micro-batch)] of a process, as schedules have it; `microbatches` >= 2 * `ranks`.

    The process fills the pipe, works in pairs (F of one stage beside B of the other) and drains it; towards
    both ends gradients of parameters (W) wait until others would have to."""
    after = ranks - rank - 1  # processes behind this one
    turns = _Turns()
    turns.repeat(2 * after, "F0")
    turns.repeat(rank + 1, "F0", "F1")
    turns.repeat(after, "I1", "W", "F1")
    turns.repeat(microbatches - 2 * ranks + rank + 1, "F0", "B1", "F1", "B0")
    turns.repeat(after, "B1", "F1", "B0")
    draining = ["B1", "B0"] * (rank + 1)
    for i, turn in enumerate(draining):
        turns.take(turn if i < rank + 1 else turn.replace("B", "I"))
    turns.repeat(after, "W", "I0")
    turns.repeat(rank + 1, "W")
    return turns.taken


class _Turns:
    """Turns by name; each kind of a stage takes its micro-batches in order."""

    def __init__(self):
        self.taken, self._waiting = [], deque()
        self._forward, self._back = [count(), count()], [count(), count()]

    def repeat(self, times, *names):
        for _ in range(times):
            for name in names:
                self.take(name)

    def take(self, name):
        if name == "W":
            self.taken.append(("W", *self._waiting.popleft()))
            return
        kind, which = name[0], int(name[1])
        microbatch = next((self._forward if kind == "F" else self._back)[which])
        self.taken.append((kind, which, microbatch))
        if kind == "I":
            self._waiting.append((which, microbatch))
