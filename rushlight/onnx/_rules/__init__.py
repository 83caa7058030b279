"""How each operator is written in ONNX: functions ``(graph, *arguments)`` by the operator's name.

Arguments are those of the operator's schema: tensors are values, sizes are numbers or scalar values.
"""

from . import (
    arithmetic,
    indexing,
    layers,
    quantized,
    randoms,
    recurrent,
    reductions,
    scans,
    searching,
    shapes,
)
from ._registry import RULES

__all__ = ["RULES"]
