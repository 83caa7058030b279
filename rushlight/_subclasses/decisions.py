"""Branches by numbers of the data that the example's data decides.

Under ``torch._functorch.config.fake_tensor_propagate_real_tensors`` a program is traced once beside real
tensors. What it asks of numbers that it read is answered by these, then and in all further traces, and the
graph checks the answers when it runs.
"""

import contextlib
import threading
import traceback
from collections import Counter

_drafts = threading.local()


class Draft:
    """What an export met that it does not take without more ado (`rushlight.export._draft_export`)."""

    def __init__(self, results):
        self.results = results  # operator of the program -> what it gives on the example
        self.missing: dict = {}  # operators without a function for fake tensors -> where the first was called
        self.decided: dict = {}  # place and question -> [(text, answer, stack)]

    def decide(self, text, value):
        stack = traceback.extract_stack()[:-1]
        where = [(f.filename, f.lineno) for f in stack]
        self.decided.setdefault((text, tuple(where)), []).append((text, value, stack))

    def result(self, func):
        """Meta tensors as the operator gave on the example, of sizes that nobody knows; else None."""
        if func not in self.results:
            return None
        from ._data_shapes import asked_size

        self.missing.setdefault(func, traceback.extract_stack()[:-1])

        def unknown(t):
            return t.new_empty([asked_size(0, None) for _ in t.shape], device="meta")

        found = self.results[func]
        return tuple(map(unknown, found)) if isinstance(found, (tuple, list)) else unknown(found)


@contextlib.contextmanager
def drafting(results):
    """Within it, exports go on where the example tells how, and the draft tells of it."""
    before, _drafts.draft = draft_under_way(), Draft(results)
    try:
        yield _drafts.draft
    finally:
        _drafts.draft = before


def draft_under_way():
    return getattr(_drafts, "draft", None)


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

    def answer(self, value, kind, names, text):
        """What the example says, which in its own trace is the value; None where it says nothing."""
        if self.decisions is None:
            return None
        key = kind, tuple(sorted(names))
        self.counts[key] += 1
        if self.decisions.looking and self.unknown.isdisjoint(names):
            self.decisions.answers[key, self.counts[key]] = value
            if (draft := draft_under_way()) is not None:
                draft.decide(text, value)
        return self.decisions.answers.get((key, self.counts[key]))
