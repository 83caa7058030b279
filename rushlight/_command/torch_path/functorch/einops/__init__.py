"""`rearrange` under its first name."""

from rushlight._functorch.rearrange import rearrange

__all__ = ["rearrange"]
