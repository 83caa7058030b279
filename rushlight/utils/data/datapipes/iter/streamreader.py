"""Kept where programs look for it."""

from rushlight.utils.data.datapipes.iter.utils import StreamReaderIterDataPipe

__all__ = ["StreamReaderIterDataPipe"]
