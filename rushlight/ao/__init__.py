"""Models with fewer bits and fewer numbers: quantisation, its layers, pruning."""

from rushlight._command.submodules import submodules_of

__all__ = ["nn", "ns", "pruning", "quantization"]

__getattr__ = submodules_of(__name__)
