"""Whether mixed precision on CUDA is out of the question."""

from rushlight.cuda.amp import amp_definitely_not_available

__all__ = ["amp_definitely_not_available"]
