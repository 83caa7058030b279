"""Scaling of losses, under its former name."""

from rushlight.amp.grad_scaler import OptState
from rushlight.cuda.amp import GradScaler

__all__ = ["GradScaler", "OptState"]
