"""Kept where programs look for it."""

from rushlight.utils.data.datapipes.iter.utils import FileOpenerIterDataPipe

__all__ = ["FileOpenerIterDataPipe"]
