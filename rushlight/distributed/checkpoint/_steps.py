"""What all ranks do together when they write or read a checkpoint; what fails on one fails on all."""

import traceback

from .._initialize import get_rank, get_world_size, is_initialized
from .._messages import all_gather_object, broadcast_object_list, scatter_object_list
from .filesystem import CheckpointException


class Steps:
    """The ranks of a group, or this process alone."""

    def __init__(self, group, no_dist):
        self._group, self._alone = group, no_dist or not is_initialized()
        self.failed = self._alone  # whether an error that is raised is known to all
        self.first = self._alone or get_rank(group) == 0

    def here(self, function):
        """What the function gives on this rank, of which the others do not wait to hear."""
        value, error = _tried(function)
        if error is not None:
            _raise_as_checkpoint_exception(error, 0 if self._alone else get_rank(self._group), {})
        return value

    def gather(self, function):
        """What the function gives on every rank."""
        value, error = _tried(function)
        if self._alone:
            self._raise([None if error is None else repr(error)], error)
            return [value]
        everyone = [None] * get_world_size(self._group)
        all_gather_object(everyone, (value, None if error is None else repr(error)), self._group)
        self._raise([said for _, said in everyone], error)
        return [value for value, _ in everyone]

    def on_first(self, function):
        """What the function gives on the first rank, for all."""
        if self._alone:
            return self.gather(function)[0]
        value, error = _tried(function) if self.first else (None, None)
        box = [(value, None if error is None else repr(error))]
        broadcast_object_list(box, group=self._group, group_src=0)
        self._raise([box[0][1]], error)
        return box[0][0]

    def plan(self, local, whole):
        """This rank's part of whole(what local() gives on every rank), which the first rank computes."""
        plans = self.gather(local)
        if self._alone:
            return self.gather(lambda: whole(plans))[0][0]
        made, error = _tried(lambda: whole(plans)) if self.first else (None, None)
        said = None if error is None else repr(error)
        parts = [(part, said) for part in made or plans] if self.first else None
        mine = [None]
        scatter_object_list(mine, parts, group=self._group, group_src=0)
        self._raise([mine[0][1]], error)
        return mine[0][0]

    def _raise(self, said, own):
        """Raise CheckpointException for this rank's error, or for those of others."""
        self.failed = self._alone or own is not None or any(text is not None for text in said)
        others = {rank: text for rank, text in enumerate(said) if text is not None}
        failures = {rank: (RuntimeError(text), traceback.StackSummary()) for rank, text in others.items()}
        if own is not None:
            rank = 0 if self._alone else get_rank(self._group)
            _raise_as_checkpoint_exception(own, rank, failures)
        if failures:
            text = "; ".join(f"rank {rank}: {text}" for rank, text in others.items())
            raise CheckpointException(text, failures)


def _raise_as_checkpoint_exception(error, rank, failures):
    """Raises this rank's error so that programs can catch it as what it is and as CheckpointException."""
    failures[rank] = error, traceback.extract_tb(error.__traceback__)
    if isinstance(error, CheckpointException):
        error._failures = failures
        raise error
    try:
        kind = type(
            CheckpointException.__name__, (CheckpointException, type(error)), {"__module__": __name__}
        )
        joined = kind(str(error), failures)
    except TypeError:  # a class that others cannot be joined with, or that is made otherwise
        joined = CheckpointException(str(error), failures)
    raise joined from error


def _tried(function):
    try:
        return function(), None
    except Exception as error:
        return None, error
