"""The functions of an MPI library, called directly: Open MPI's or MPICH's, whichever is installed.

Nothing is compiled: the two differ in how they represent handles, and in the layout of a status. Every call
that may take long is a non-blocking one whose end is polled for, so that it has a time limit and Python's
other threads go on.
"""

import ctypes
import ctypes.util
import functools
import glob
import os
import shutil
import sys
import time
from ctypes import byref, c_int, c_size_t, c_void_p

_TYPES = {  # dtype -> (Open MPI's symbol, MPICH's number)
    "float32": ("ompi_mpi_float", 0x4C00040A),
    "float64": ("ompi_mpi_double", 0x4C00080B),
    "uint8": ("ompi_mpi_uint8_t", 0x4C00013B),
    "int8": ("ompi_mpi_int8_t", 0x4C000137),
    "int16": ("ompi_mpi_int16_t", 0x4C000238),
    "int32": ("ompi_mpi_int32_t", 0x4C000439),
    "int64": ("ompi_mpi_int64_t", 0x4C00083A),
}
_OPERATIONS = {
    "MAX": ("ompi_mpi_op_max", 0x58000001),
    "MIN": ("ompi_mpi_op_min", 0x58000002),
    "SUM": ("ompi_mpi_op_sum", 0x58000003),
    "PRODUCT": ("ompi_mpi_op_prod", 0x58000004),
    "BAND": ("ompi_mpi_op_band", 0x58000006),
    "BOR": ("ompi_mpi_op_bor", 0x58000008),
    "BXOR": ("ompi_mpi_op_bxor", 0x5800000A),
}
_THREAD_MULTIPLE = 3


class _OpenMpiStatus(ctypes.Structure):
    _fields_ = [
        ("source", c_int),
        ("tag", c_int),
        ("error", c_int),
        ("cancelled", c_int),
        ("count", c_size_t),
    ]


class _MpichStatus(ctypes.Structure):
    _fields_ = [("low", c_int), ("high", c_int), ("source", c_int), ("tag", c_int), ("error", c_int)]


def _candidates():
    if os.environ.get("RUSHLIGHT_MPI_LIBRARY"):
        yield os.environ["RUSHLIGHT_MPI_LIBRARY"]
        return
    prefixes = [sys.prefix]
    launcher = shutil.which("mpirun")
    if launcher:
        prefixes.append(os.path.dirname(os.path.dirname(os.path.realpath(launcher))))
    for prefix in prefixes:
        yield from sorted(glob.glob(os.path.join(prefix, "lib", "libmpi.so*")))
    found = ctypes.util.find_library("mpi")
    if found:
        yield found


@functools.cache
def library():
    """The library of this process, or None."""
    for path in _candidates():
        try:
            return Library(ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL))
        except (OSError, AttributeError):
            continue
    return None


class Library:
    """MPI's functions; `world` is MPI_COMM_WORLD."""

    def __init__(self, functions):
        self._functions = functions
        self.open_mpi = hasattr(functions, "ompi_mpi_comm_world")
        self.handle = c_void_p if self.open_mpi else c_int
        self._status = _OpenMpiStatus if self.open_mpi else _MpichStatus
        functions.MPI_Test  # noqa: B018  a library of that name without MPI raises AttributeError
        self.any_source = -1 if self.open_mpi else -2
        self._begun = False

    def _named(self, symbol, number):
        if self.open_mpi:
            return c_void_p(ctypes.addressof(c_void_p.in_dll(self._functions, symbol)))
        return c_int(number)

    @property
    def world(self):
        return self._named("ompi_mpi_comm_world", 0x44000000)

    def dtype(self, name):
        if name not in _TYPES:
            raise RuntimeError(f"MPI has no reductions of {name}; use float32 or another of {sorted(_TYPES)}")
        return self._named(*_TYPES[name])

    def operation(self, name):
        return self._named(*_OPERATIONS[name])

    def call(self, name, *args):
        code = getattr(self._functions, name)(*args)
        if code != 0:
            raise RuntimeError(f"{name} failed with code {code}")

    # --- the beginning and the end

    def begin(self):
        """Initialise MPI, unless the program has."""
        if self._begun:
            return
        known, provided = c_int(), c_int()
        self.call("MPI_Initialized", byref(known))
        if not known.value:
            self.call("MPI_Init_thread", None, None, _THREAD_MULTIPLE, byref(provided))
            import atexit

            atexit.register(self._end)
        else:
            self.call("MPI_Query_thread", byref(provided))
        if provided.value < _THREAD_MULTIPLE:
            raise RuntimeError("this MPI does not allow calls from several threads (MPI_THREAD_MULTIPLE)")
        self._begun = True

    def _end(self):
        over = c_int()
        self.call("MPI_Finalized", byref(over))
        if not over.value:
            self.call("MPI_Finalize")

    def rank_and_size(self):
        rank, size = c_int(), c_int()
        self.call("MPI_Comm_rank", self.world, byref(rank))
        self.call("MPI_Comm_size", self.world, byref(size))
        return rank.value, size.value

    def communicator(self, ranks, number):
        """Of these ranks of the world, all of which make this call."""
        world, some, made = self.handle(), self.handle(), self.handle()
        self.call("MPI_Comm_group", self.world, byref(world))
        members = (c_int * len(ranks))(*ranks)
        self.call("MPI_Group_incl", world, len(ranks), members, byref(some))
        self.call("MPI_Comm_create_group", self.world, some, number & 0x7FFF, byref(made))
        self.call("MPI_Group_free", byref(some))
        self.call("MPI_Group_free", byref(world))
        return made

    def free(self, communicator):
        self.call("MPI_Comm_free", byref(communicator))

    # --- calls under way

    def start(self, name, *args):
        """Start a non-blocking call; `args` without the request, which is returned."""
        request = self.handle()
        self.call(name, *args, byref(request))
        return request

    def finish(self, request, milliseconds):
        """Wait for a call; its status. Raises RuntimeError when the time is over."""
        done, status = c_int(), self._status()
        test, request_at = self._functions.MPI_Test, byref(request)
        deadline, pause = time.monotonic() + milliseconds / 1000, 0.0
        while True:
            if test(request_at, byref(done), byref(status)) != 0:
                raise RuntimeError("MPI_Test failed")
            if done.value:
                return status
            if time.monotonic() > deadline:
                raise RuntimeError(f"timed out after {milliseconds} ms")
            time.sleep(pause)
            pause = min(pause + 2e-6, 1e-3)
