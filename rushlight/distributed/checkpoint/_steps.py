"""What all ranks do together when they write or read a checkpoint; what fails on one fails on all."""

from .._initialize import get_rank, get_world_size, is_initialized
from .._messages import all_gather_object, broadcast_object_list, scatter_object_list
from .filesystem import CheckpointException


class Steps:
    """The ranks of a group, or this process alone."""

    def __init__(self, group, no_dist):
        self._group, self._alone = group, no_dist or not is_initialized()
        self.failed = self._alone  # whether an error that is raised is known to all
        self.first = self._alone or get_rank(group) == 0

    def gather(self, function):
        """What the function gives on every rank."""
        if self._alone:
            return [function()]
        value, error = _tried(function)
        everyone = [None] * get_world_size(self._group)
        all_gather_object(everyone, (value, None if error is None else repr(error)), self._group)
        self._raise([said for _, said in everyone], error)
        return [value for value, _ in everyone]

    def on_first(self, function):
        """What the function gives on the first rank, for all."""
        if self._alone:
            return function()
        value, error = _tried(function) if self.first else (None, None)
        box = [(value, None if error is None else repr(error))]
        broadcast_object_list(box, group=self._group, group_src=0)
        self._raise([box[0][1]], error)
        return box[0][0]

    def plan(self, local, whole):
        """This rank's part of whole(what local() gives on every rank), which the first rank computes."""
        plans = self.gather(local)
        if self._alone:
            return whole(plans)[0]
        made, error = _tried(lambda: whole(plans)) if self.first else (None, None)
        said = None if error is None else repr(error)
        parts = [(part, said) for part in made or plans] if self.first else None
        mine = [None]
        scatter_object_list(mine, parts, group=self._group, group_src=0)
        self._raise([mine[0][1]], error)
        return mine[0][0]

    def _raise(self, said, own):
        """Raise this rank's error, or CheckpointException for those of others."""
        self.failed = own is not None or any(text is not None for text in said)
        if own is not None:
            raise own
        failed = [f"rank {rank}: {text}" for rank, text in enumerate(said) if text is not None]
        if failed:
            raise CheckpointException("; ".join(failed))


def _tried(function):
    try:
        return function(), None
    except Exception as error:
        return None, error
