"""The class of ``torch.__version__``."""

from rushlight.version import TorchVersion
from rushlight.version import __version__ as internal_version

__all__ = ["TorchVersion"]
