"""No averaging at all: how fast a job would be if sending cost nothing."""

from ....futures import Future

__all__ = ["noop_hook"]


def noop_hook(_, bucket):
    """Leaves each rank with its own gradients."""
    kept: Future = Future()
    kept.set_result(bucket.buffer())
    return kept
