"""Orders of work in which the gradients of parameters fill the turns that a pipeline would idle.

Source: Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024. A turn is a forward step (F), the gradients
of a stage's inputs (I) or those of its parameters (W), all taken as equally long. Every process plays all of
them, turn by turn: each does what others wait for, I before F, and W when there is nothing else to do or no
room for the activations of another micro-batch.
"""

__all__ = ["zero_bubble_orders"]


def zero_bubble_orders(stages, microbatches, limit):
    """For each process its turns: (kind, stage, micro-batch), or None where it idles.

    `stages` lists each process's stages, first ones first; `limit` is how many micro-batches' activations of
    one stage a process holds at most."""
    while True:
        game = _Game(stages, microbatches, limit)
        if game.play():
            return game.turns
        limit += 1


class _Game:
    def __init__(self, stages, microbatches, limit):
        self._stages, self._count, self._limit = stages, microbatches, limit
        self._last = max(s for own in stages for s in own)
        self.turns = [[] for _ in stages]
        self._done: set = set()  # (kind, stage, micro-batch)
        self._next = {(kind, s): 0 for own in stages for s in own for kind in "FIW"}

    def play(self):
        """Whether all could be done within the limit."""
        total = 3 * self._count * sum(len(own) for own in self._stages)
        while len(self._done) < total:
            chosen = [self._choose(own) for own in self._stages]
            if not any(chosen):
                return False
            for turns, turn in zip(self.turns, chosen):
                turns.append(turn)
                if turn is not None:
                    self._done.add(turn)
                    self._next[turn[:2]] += 1
        return True

    def _choose(self, own):
        """The next turn of a process with these stages, by what was done up to the turn before."""
        ready = [(self._next["I", s], s) for s in own if self._can_go_back(s)]
        if ready:
            microbatch, stage = min(ready)
            return "I", stage, microbatch
        for position in reversed(range(len(own))):  # what is nearest to its end first
            stage = own[position]
            if self._can_go_forward(own, position):
                return "F", stage, self._next["F", stage]
        waiting = [(self._next["W", s], s) for s in own if self._next["W", s] < self._next["I", s]]
        if waiting:
            microbatch, stage = min(waiting)
            return "W", stage, microbatch
        return None

    def _can_go_back(self, stage):
        microbatch = self._next["I", stage]
        needed = ("F", stage, microbatch) if stage == self._last else ("I", stage + 1, microbatch)
        return microbatch < self._next["F", stage] and needed in self._done

    def _can_go_forward(self, own, position):
        stage = own[position]
        microbatch = self._next["F", stage]
        held = sum(self._next["F", s] - self._next["W", s] for s in own)
        room = self._limit - held - (len(own) - 1 - position)  # each later stage keeps a place
        there = stage == 0 or ("F", stage - 1, microbatch) in self._done
        return microbatch < self._count and room > 0 and there
