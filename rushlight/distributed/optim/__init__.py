"""Optimizers whose states are sharded over processes."""

from rushlight.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
