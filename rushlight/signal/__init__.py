"""Signal processing."""

from rushlight.signal import windows

__all__ = ["windows"]

__package_capture__ = "through"  # Note [Capture marks]
