"""The operations of reductions."""

import enum
from typing import Any

from rushlight._command.names import show_from


class RedOpType(enum.IntEnum):
    """What reductions compute; AVG divides the sum by the number of ranks."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self):
        return f"RedOpType.{self.name}"

    __format__ = object.__format__  # type: ignore[assignment]


class ReduceOp:
    """`ReduceOp.SUM`, `AVG`, `PRODUCT`, `MIN`, `MAX`, `BAND`, `BOR`, `BXOR`."""

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType

    def __init__(self, op=RedOpType.SUM):
        self.op: Any = op.op if isinstance(op, ReduceOp) else RedOpType(op)

    def __eq__(self, other):
        return self.op == (other.op if isinstance(other, ReduceOp) else other)

    def __hash__(self):
        return hash(self.op)

    def __repr__(self):
        return f"<torch.distributed.distributed_c10d.ReduceOp {self.op.name}>"


class PremultipliedSum(ReduceOp):
    """A sum of what the ranks hold, each multiplied by its own `factor` before: NCCL's."""

    def __init__(self, factor):
        super().__init__(RedOpType.PREMUL_SUM)
        self.factor = factor


def make_nccl_premul_sum(factor):
    """The sum of operands that each rank multiplies by its `factor` first, without a kernel of its own.

    `factor` is a number, or a tensor of one element on the device with the dtype of what is reduced. For
    floating dtypes (else TypeError), and for groups on NCCL (else RuntimeError).
    """
    return PremultipliedSum(factor)


class _DeprecatedReduceOp:
    """The older spelling of ReduceOp's members."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(ReduceOp, name)


reduce_op = _DeprecatedReduceOp()


def op_of(op) -> RedOpType:
    if isinstance(op, PremultipliedSum):
        raise RuntimeError(
            "Cannot use ReduceOp.PREMUL_SUM with this group: only those on NCCL multiply first"
        )
    return op.op if isinstance(op, ReduceOp) else RedOpType(op)


show_from("distributed.distributed_c10d", ReduceOp)
