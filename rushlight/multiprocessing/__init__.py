"""The standard module ``multiprocessing``, with tensors that travel between processes as shared memory.

Everything of the standard module is here. A tensor that goes through a queue, a pipe or a pool, or is an
argument of a process, moves to shared memory first if it is not there already, and both sides then see the
same bytes.
"""

import multiprocessing
from multiprocessing import *

from rushlight._C import _get_thread_name, _set_thread_name
from rushlight._C import _set_pdeathsig as _prctl_pr_set_pdeathsig
from rushlight._command.submodules import submodules_of
from rushlight.multiprocessing import reductions
from rushlight.multiprocessing.reductions import init_reductions
from rushlight.multiprocessing.spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = ["set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies"]
__all__ += multiprocessing.__all__

_all_sharing_strategies = {"file_descriptor", "file_system"}
_sharing_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy):
    """Accepts PyTorch's names; memory is shared in the same way under both, without files and with one
    descriptor for each process that sends."""
    global _sharing_strategy
    if new_strategy not in _all_sharing_strategies:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {_all_sharing_strategies}"
        )
    _sharing_strategy = new_strategy


def get_sharing_strategy():
    """The name given to :func:`set_sharing_strategy`."""
    return _sharing_strategy


def get_all_sharing_strategies():
    """The names that :func:`set_sharing_strategy` accepts."""
    return _all_sharing_strategies


init_reductions()

__getattr__ = submodules_of(__name__)
