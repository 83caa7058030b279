"""What the methods of process groups are told beside tensors, for backends that programs write."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from rushlight._command.names import show_public_from

from ._reduce_op import ReduceOp

NO_LIMIT = timedelta(0)  # the group's own limit counts


@dataclass
class AllgatherOptions:
    timeout: timedelta = NO_LIMIT
    asyncOp: bool = True


@dataclass
class AllreduceOptions:
    reduceOp: Any = ReduceOp.SUM
    timeout: timedelta = NO_LIMIT
    asyncOp: bool = True
    sparseIndices: Any = None


@dataclass
class AllreduceCoalescedOptions(AllreduceOptions):
    pass


@dataclass
class AllToAllOptions:
    timeout: timedelta = NO_LIMIT
    asyncOp: bool = True


@dataclass
class BarrierOptions:
    device_ids: list = field(default_factory=list)
    timeout: timedelta = NO_LIMIT
    device: Any = None
    asyncOp: bool = True


@dataclass
class BroadcastOptions:
    rootRank: int = 0
    rootTensor: int = 0
    timeout: timedelta = NO_LIMIT
    asyncOp: bool = True


@dataclass
class GatherOptions:
    rootRank: int = 0
    timeout: timedelta = NO_LIMIT
    asyncOp: bool = True


@dataclass
class ReduceOptions:
    reduceOp: Any = ReduceOp.SUM
    rootRank: int = 0
    rootTensor: int = 0
    timeout: timedelta = NO_LIMIT
    asyncOp: bool = True


@dataclass
class ReduceScatterOptions:
    reduceOp: Any = ReduceOp.SUM
    timeout: timedelta = NO_LIMIT
    asyncOp: bool = True


@dataclass
class ScatterOptions:
    rootRank: int = 0
    timeout: timedelta = NO_LIMIT
    asyncOp: bool = True


__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "BarrierOptions",
    "BroadcastOptions",
    "GatherOptions",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
]
show_public_from("distributed", globals())
