"""The class of ``torch.__version__``."""

from rushlight.version import TorchVersion

__all__ = ["TorchVersion"]
