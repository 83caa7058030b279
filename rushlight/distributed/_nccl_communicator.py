"""A communicator of NCCL: its ranks, and a stream of its own on one device."""

import threading
import time

from ._errors import DistBackendError
from ._nccl_library import IN_PROGRESS, SUCCESS, Factor, require

_PAUSE = 0.0005  # seconds between two looks at a call that goes on in the background


class Communicator:
    """`ranks` of the group meet through `store` under `key`; blocks until all are there or time is up."""

    def __init__(self, device, rank, size, store, key, timeout, priority=0):
        from .. import cuda

        self.device, self.rank, self.size, self._nccl = device, rank, size, require()
        self._timeout = timeout
        self._lock = threading.Lock()  # of the handle's end
        self._handle = None
        with cuda.device(device):
            self.stream = cuda.Stream(device, priority=priority)
            if rank == 0:
                store.set(key, self._nccl.unique_id())
            self._handle = self._nccl.start_communicator(size, store.get(key), rank)
            try:
                self._settle(self._nccl.state(self._handle))
            except DistBackendError:
                self.abort()
                raise

    @property
    def handle(self):
        if self._handle is None:
            raise DistBackendError("NCCL communicator was aborted on this rank")
        return self._handle

    def run(self, calls):
        """Give calls, [(name, arguments before the communicator)], to the stream as one group.

        A `Factor` among the arguments stands for the operation that multiplies by it.
        """
        nccl, stream = self._nccl, self.stream.cuda_stream
        handle = self.handle
        operations = {
            each: nccl.premultiplied_sum(each, handle)
            for _, *arguments in calls
            for each in arguments
            if isinstance(each, Factor)
        }
        for each in operations:
            each.used_on(self.stream)
        try:
            self._run_group(calls, operations, nccl, handle, stream)
        finally:
            for operation in operations.values():
                nccl.release_operation(operation, handle)

    def _run_group(self, calls, operations, nccl, handle, stream):
        nccl.call("ncclGroupStart")
        try:
            for name, *arguments in calls:
                given = [operations[a] if isinstance(a, Factor) else a for a in arguments]
                nccl.call(name, *given, handle, stream, handle=handle)
        finally:
            state = nccl.call("ncclGroupEnd", handle=handle)
        self._settle(state)

    def _settle(self, state):
        """Wait until a call has been taken over by the device."""
        deadline = time.monotonic() + self._timeout.total_seconds()
        while state == IN_PROGRESS:
            if time.monotonic() > deadline:
                raise DistBackendError(
                    f"NCCL timed out after {self._timeout}: rank {self.rank} of {self.size} waits for the "
                    "others to connect"
                )
            time.sleep(_PAUSE)
            state = self._nccl.state(self.handle)
        if state != SUCCESS:
            raise DistBackendError(f"NCCL error: {self._nccl.explained(state, self._handle)}")

    def error(self):
        """What went wrong since the last call, or None."""
        with self._lock:
            if self._handle is None:
                return None
            state = self._nccl.state(self._handle)
            return None if state in (SUCCESS, IN_PROGRESS) else self._nccl.explained(state, self._handle)

    def abort(self):
        """End it at once; what its stream still waits for is given up."""
        with self._lock:
            handle, self._handle = self._handle, None
        if handle is not None:
            self._nccl.quietly("ncclCommAbort", handle)

    def close(self):
        """End it after the work it was given."""
        with self._lock:
            handle, self._handle = self._handle, None
        if handle is None:
            return
        state, deadline = self._nccl.call("ncclCommFinalize", handle), time.monotonic() + 60
        while state == IN_PROGRESS and time.monotonic() < deadline:
            time.sleep(_PAUSE)
            state = self._nccl.state(handle)
        self._nccl.quietly("ncclCommDestroy" if state == SUCCESS else "ncclCommAbort", handle)
