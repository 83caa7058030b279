"""The former home of `torch.amp`, with the device type fixed to "cpu"."""

from rushlight.cpu.amp.autocast_mode import autocast
from rushlight.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
