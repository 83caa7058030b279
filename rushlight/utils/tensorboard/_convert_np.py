"""`make_np` where PyTorch has it."""

from rushlight.utils.tensorboard.arrays import make_np

__all__ = ["make_np"]
