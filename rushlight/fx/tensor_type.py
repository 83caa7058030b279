"""Types of tensors by their sizes, some of which are not known: annotations for graphs.

``TensorType((1, 3, Dyn, 5))`` is a tensor of four dimensions; ``Dyn`` alone is a tensor of which nothing is
known. Gradual typing compares them by consistency and precision (Siek and Taha).
"""

from __future__ import annotations

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """The type of tensors with these sizes: numbers or ``Dyn``."""

    def __init__(self, dim):
        self.__origin__ = TensorType
        self.__args__ = dim

    def __repr__(self):
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other):
        return isinstance(other, TensorType) and list(self.__args__) == list(other.__args__)

    def __hash__(self):
        return hash(tuple(self.__args__))

    @staticmethod
    def __class_getitem__(*args):
        return TensorType(args[0] if len(args) == 1 and isinstance(args[0], tuple) else args)


class _DynType:
    """Anything."""

    def __eq__(self, other):
        return isinstance(other, _DynType)

    def __hash__(self):
        return hash(_DynType)

    def __str__(self):
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


def _compare(t1, t2, sizes, unknown):
    if t1 == t2 or unknown(t1, t2):
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        pairs = list(zip(t1.__args__, t2.__args__))
        return len(t1.__args__) == len(t2.__args__) and all(sizes(a, b) for a, b in pairs)
    return False


def is_consistent(t1, t2) -> bool:
    """Whether both can be types of one tensor: what is unknown is consistent with everything."""

    return _compare(t1, t2, is_consistent, lambda a, b: Dyn in (a, b))


def is_more_precise(t1, t2) -> bool:
    """Whether the first says at least as much as the second, and nothing else."""

    return _compare(t1, t2, is_more_precise, lambda a, b: b == Dyn)
