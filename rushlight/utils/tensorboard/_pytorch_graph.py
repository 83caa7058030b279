"""`graph` where PyTorch has it."""

from rushlight.utils.tensorboard.graph import graph

__all__ = ["graph"]
