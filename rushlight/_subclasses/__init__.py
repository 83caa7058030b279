"""Fake tensors: programs run on shapes alone, on devices that need not exist."""

from rushlight._command.submodules import submodules_of
from rushlight._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from rushlight._subclasses.fake_utils import CrossRefFakeMode

__all__ = [
    "CrossRefFakeMode",
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
    "UnsupportedOperatorException",
]

__getattr__ = submodules_of(__name__)
