"""Helpers of data pipes."""

from rushlight.utils.data.datapipes.utils import common

__all__ = ["common"]
