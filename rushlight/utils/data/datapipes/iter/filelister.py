"""Kept where programs look for it."""

from rushlight.utils.data.datapipes.iter.utils import FileListerIterDataPipe

__all__ = ["FileListerIterDataPipe"]
