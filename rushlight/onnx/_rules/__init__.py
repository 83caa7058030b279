"""How each operator is written in ONNX: functions ``(graph, *arguments)`` by the operator's name.

Arguments are those of the operator's schema: tensors are values, sizes are numbers or scalar values.
"""

from . import (
    arithmetic,
    complex_numbers,
    counting,
    indexing,
    layers,
    quantized,
    randoms,
    recurrent,
    reductions,
    scans,
    searching,
    shapes,
    special_functions,
)
from ._registry import RULES

__all__ = ["RULES"]
