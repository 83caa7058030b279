"""Remote calls between real processes on the loopback interface."""

import socket
import struct
import threading

import pytest
import rpc_programs as programs

from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight.distributed import rpc
from rushlight.distributed.rpc import _wire

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


def test_strangers_are_not_listened_to():
    secret = b"s" * _wire.SECRET_BYTES
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = []
        thread = threading.Thread(target=lambda: taken.append(_wire.accept(listener, secret)))
        thread.start()
        with socket.create_connection(listener.getsockname()) as stranger:
            stranger.sendall(b"x" * _wire.SECRET_BYTES + struct.pack("<QI", 1 << 60, 0))
            thread.join(20)
            assert taken == [None]
            with pytest.raises(ConnectionError):
                assert not stranger.recv(1)
                raise ConnectionError("closed")
