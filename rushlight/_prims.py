"""What packages ask for under this path: the helpers of `_prims_common`, and the operators that
``torch.ops.prims`` has."""

import rushlight
from rushlight import _prims_common as utils

__all__ = ["utils"]


def __getattr__(name):
    if name.startswith("_") or not hasattr(rushlight.ops.prims, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(rushlight.ops.prims, name)
