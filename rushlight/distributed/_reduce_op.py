"""The operations of reductions."""

import enum


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
        self.op = op.op if isinstance(op, ReduceOp) else RedOpType(op)

    def __eq__(self, other):
        return self.op == (other.op if isinstance(other, ReduceOp) else other)

    def __hash__(self):
        return hash(self.op)

    def __repr__(self):
        return f"<torch.distributed.distributed_c10d.ReduceOp {self.op.name}>"


class _DeprecatedReduceOp:
    """The older spelling of ReduceOp's members."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(ReduceOp, name)


reduce_op = _DeprecatedReduceOp()


def op_of(op) -> RedOpType:
    return op.op if isinstance(op, ReduceOp) else RedOpType(op)
