"""Types that TorchScript reads in annotations; they are plain `typing` here."""

from typing import Any, Dict, List, Optional, Tuple, TypeVar, Union  # noqa: F401, UP035

from rushlight.nn._broadcasting import (  # noqa: F401
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    BroadcastingList4,
    BroadcastingList5,
    BroadcastingList6,
)

T = TypeVar("T")
