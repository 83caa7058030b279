"""The wrapper form of sharding: over one process it runs its module, over more it is not here yet."""

import enum
from dataclasses import dataclass

import rushlight as torch
from rushlight import distributed
from rushlight.nn import Module

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullyShardedDataParallel",
    "MixedPrecision",
    "ShardingStrategy",
    "StateDictType",
]


class ShardingStrategy(enum.Enum):
    """What is sharded: parameters, gradients and states of optimizers, or fewer of them."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class BackwardPrefetch(enum.Enum):
    """When the next parameters are gathered in the backward pass."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


class StateDictType(enum.Enum):
    """Whether a state holds whole tensors, flat ones or shards."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


@dataclass
class MixedPrecision:
    """The dtypes of parameters, reduced gradients and buffers."""

    param_dtype: torch.dtype | None = None
    reduce_dtype: torch.dtype | None = None
    buffer_dtype: torch.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """Whether parameters rest in the CPU's memory."""

    offload_params: bool = False


class FullyShardedDataParallel(Module):
    """Runs module; its parameters would be sharded over the processes of a group."""

    def __init__(self, module, process_group=None, **options):
        super().__init__()
        size = distributed.get_world_size(process_group)
        if size > 1:
            raise NotImplementedError(
                f"FullyShardedDataParallel: sharding over {size} processes is not here yet; use "
                "DistributedDataParallel"
            )
        self._fsdp_wrapped_module = module
        self.process_group = process_group

    @property
    def module(self):
        return self._fsdp_wrapped_module

    def forward(self, *args, **kwargs):
        return self._fsdp_wrapped_module(*args, **kwargs)
