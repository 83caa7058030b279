"""What changes how process groups are used: communication hooks, uneven inputs, checkpoint wrappers."""

from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
