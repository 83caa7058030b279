"""Models with fewer bits: quantisation and its layers."""

from rushlight._command.submodules import submodules_of

__all__ = ["nn", "quantization"]

__getattr__ = submodules_of(__name__)
