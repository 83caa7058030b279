"""What changes a module in place for a job: `checkpoint`, `fully_shard`'s former home, their contract."""

from rushlight.distributed._composable.checkpoint_activation import checkpoint
from rushlight.distributed._composable.contract import _get_registry, contract

__all__ = ["checkpoint", "contract", "fully_shard"]


def __getattr__(name):
    if name == "fully_shard":
        from rushlight.distributed.fsdp import fully_shard

        return fully_shard
    raise AttributeError(f"module 'torch.distributed._composable' has no attribute {name!r}")
