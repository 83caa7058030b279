"""Annotations of arguments that are a number, or a list with one for each dimension."""


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
