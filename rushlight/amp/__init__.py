"""Mixed precision: `autocast` runs matrix products and convolutions in half precision, `GradScaler` keeps
small float16 gradients from vanishing."""

from rushlight.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from rushlight.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

__package_capture__ = "through"  # Note [Capture marks]
