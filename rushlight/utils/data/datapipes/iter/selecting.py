"""Kept where programs look for it."""

from rushlight.utils.data.datapipes.iter.callable import FilterIterDataPipe

__all__ = ["FilterIterDataPipe"]
