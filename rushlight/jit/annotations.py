"""Types that TorchScript reads in annotations; they are plain `typing` here."""

from typing import Any, Dict, List, Optional, Tuple, TypeVar, Union  # noqa: F401, UP035

T = TypeVar("T")


class _BroadcastingList:
    """``BroadcastingList2[int]``: a number, or a list of that many."""

    def __getitem__(self, types):
        return None


(
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    BroadcastingList4,
    BroadcastingList5,
    BroadcastingList6,
) = (_BroadcastingList() for _ in range(6))
