"""Models as ONNX files: `export` goes by way of `torch.export`; the package onnx writes the file.

`register_custom_op_symbolic` keeps rules of the older kind, which this exporter does not use: it takes
``custom_translation_table``.
"""

import enum

from rushlight.onnx._export import (
    OnnxExporterError,
    ONNXProgram,
    export,
    is_in_onnx_export,
    producer_name,
    producer_version,
)
from rushlight.onnx._load import OnnxModule, load
from rushlight.onnx._operators import UnsupportedOnnxError

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "OnnxModule",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "UnsupportedOnnxError",
    "export",
    "is_in_onnx_export",
    "load",
    "producer_name",
    "producer_version",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]


class TensorProtoDataType(enum.IntEnum):
    """The types of elements that an ONNX file knows, by their numbers there."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20


class TrainingMode(enum.IntEnum):
    """The mode in which a model is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """What becomes of operators that ONNX does not have."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


_custom_rules: dict = {}  # operator name to {opset: rule}


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Keep a rule that writes an operator as ONNX nodes, from an opset on."""
    namespace, found, name = symbolic_name.partition("::")
    if not (found and namespace and name):
        raise ValueError(
            f"Failed to register operator {symbolic_name}. The symbolic name must match the format "
            "domain::name, and should start with a letter and contain only alphanumerical characters."
        )
    _custom_rules.setdefault(symbolic_name, {})[opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Forget such a rule."""
    _custom_rules.get(symbolic_name, {}).pop(opset_version, None)
