"""Branches by numbers of the data that the example's data decides.

Under ``torch._functorch.config.fake_tensor_propagate_real_tensors`` a program is traced once beside real
tensors. What it asks of numbers that it read is answered by these, then and in all further traces, and the
graph checks the answers when it runs.
"""

from collections import Counter


class Decisions:
    """The answers for one program."""

    def __init__(self):
        self.looking = True  # in the trace whose numbers are the example's
        self.answers: dict = {}


class Asked:
    """The questions of one trace, in the order in which it asks them."""

    def __init__(self, decisions):
        self.decisions, self.counts = decisions, Counter()
        self.unknown: set = set()  # numbers of which no real tensor told the value

    @property
    def looking(self):
        return self.decisions is not None and self.decisions.looking

    def answer(self, value, kind, names):
        """What the example says, which in its own trace is the value; None where it says nothing."""
        if self.decisions is None:
            return None
        key = kind, tuple(sorted(names))
        self.counts[key] += 1
        if self.decisions.looking and self.unknown.isdisjoint(names):
            self.decisions.answers[key, self.counts[key]] = value
        return self.decisions.answers.get((key, self.counts[key]))
