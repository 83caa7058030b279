"""Layers of quantised models: fused ones, those of training, and those that compute with integers."""

from rushlight._command.submodules import submodules_of

__all__ = ["intrinsic", "qat", "quantizable", "quantized", "sparse"]

__getattr__ = submodules_of(__name__)
