"""Modules on several devices at once."""

from rushlight._command.submodules import submodules_of

from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate",
    "scatter",
]  # fmt: skip

__getattr__ = submodules_of(__name__)
