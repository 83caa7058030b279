"""Optimizers whose states are sharded over processes, or that step parameters of several workers."""

from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer", "as_functional_optim"]

_HOMES = {
    "DistributedOptimizer": "optimizer",
    "PostLocalSGDOptimizer": "post_localSGD_optimizer",
    "_apply_optimizer_in_backward": "apply_optimizer_in_backward",
    "_get_in_backward_optimizers": "apply_optimizer_in_backward",
    "as_functional_optim": "_functional",
}


def __getattr__(name):
    import importlib

    home = "_functional" if name.startswith("_Functional") else _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'torch.distributed.optim' has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
