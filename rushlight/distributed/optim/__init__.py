"""Optimizers whose states are sharded over processes, or that step parameters of several workers."""

from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "ZeroRedundancyOptimizer"]


def __getattr__(name):
    if name == "DistributedOptimizer":
        from .optimizer import DistributedOptimizer

        return DistributedOptimizer
    raise AttributeError(f"module 'torch.distributed.optim' has no attribute {name!r}")
