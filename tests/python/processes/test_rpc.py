"""Remote calls between real processes on the loopback interface."""

import pytest
import rpc_programs as programs

from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight.distributed import rpc

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize(
    "program, size",
    [("calls", 3), ("references", 3), ("gradients", 2), ("training", 2), ("dies", 2), ("gathers", 3)],
)
def test_programs(program, size):
    server = dist.TCPStore("127.0.0.1", 0, is_master=True)
    mp.spawn(getattr(programs, program), args=(size, server.port), nprocs=size)


@rpc.api._require_initialized
def guarded():
    raise AssertionError("there is no job")


def test_what_is_missing_is_said():
    for call in (
        rpc.get_worker_info,
        rpc.shutdown,
        lambda: rpc.remote("x", len),
        lambda: rpc.RRef(1),
        guarded,
    ):
        with pytest.raises(RuntimeError, match="RPC has not been initialized"):
            call()
    with pytest.raises(ValueError, match="CPU memory only"):
        rpc.TensorPipeRpcBackendOptions(device_maps={"worker1": {0: 1}})
