"""Data pipes: datasets made of small steps, each of which wraps the one before."""

from rushlight.utils.data.datapipes import iter, map

__all__ = ["iter", "map"]
