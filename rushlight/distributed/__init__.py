"""Processes that work together: groups, collectives, stores; data parallelism is in `nn.parallel`.

`init_process_group("gloo")` in every process of a job, then `all_reduce(tensor)` and the like. Where the
build has no backend `is_available()` is False, and making a group says what to install.
"""

import sys as _sys

from rushlight._command.submodules import submodule as _submodule

from . import distributed_c10d
from ._initialize import is_available as is_available
from .distributed_c10d import *  # noqa: F403
from .distributed_c10d import (
    _all_gather_base,
    _coalescing_manager,
    _find_pg_by_ranks_and_tag,
    _get_default_group,
    _get_default_store,
    _get_pg_default_device,
    _make_nccl_premul_sum,
    _rank_not_in_group,
    _reduce_scatter_base,
    _resolve_process_group,
)

_LAZY = {
    "DeviceMesh": "device_mesh",
    "init_device_mesh": "device_mesh",
    "device_mesh": "device_mesh",
    "nn": "nn",
    "algorithms": "algorithms",
    "checkpoint": "checkpoint",
    "elastic": "elastic",
    "run": "run",
    "optim": "optim",
    "tensor": "tensor",
    "fsdp": "fsdp",
    "pipelining": "pipelining",
    "flight_recorder": "flight_recorder",
    "rpc": "rpc",
    "simulate": "simulate",
    "autograd": "autograd",
    "GradBucket": "_reducer",
}


TYPE_CHECKING = False
if TYPE_CHECKING:  # what `__getattr__` finds
    from rushlight.distributed import algorithms as algorithms
    from rushlight.distributed import autograd as autograd
    from rushlight.distributed import checkpoint as checkpoint
    from rushlight.distributed import device_mesh as device_mesh
    from rushlight.distributed import elastic as elastic
    from rushlight.distributed import flight_recorder as flight_recorder
    from rushlight.distributed import fsdp as fsdp
    from rushlight.distributed import nn as nn
    from rushlight.distributed import optim as optim
    from rushlight.distributed import pipelining as pipelining
    from rushlight.distributed import rpc as rpc
    from rushlight.distributed import run as run
    from rushlight.distributed import simulate as simulate
    from rushlight.distributed import tensor as tensor
    from rushlight.distributed._reducer import GradBucket as GradBucket
    from rushlight.distributed.device_mesh import DeviceMesh as DeviceMesh
    from rushlight.distributed.device_mesh import init_device_mesh as init_device_mesh


def __getattr__(name):
    if name not in _LAZY:
        return _submodule(__name__, name)
    import importlib

    module = importlib.import_module(f"{__name__}.{_LAZY[name]}")
    return module if name == _LAZY[name] else getattr(module, name)


def breakpoint(rank: int = 0, skip: int = 0):
    """A debugger on one rank, while the others wait at a barrier."""
    import pdb

    if get_rank() == rank:  # noqa: F405
        pdb.Pdb().set_trace(_sys._getframe().f_back)
    barrier()  # noqa: F405
