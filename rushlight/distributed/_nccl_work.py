"""Collectives that a CUDA stream works on: waiting orders the caller's stream behind them, not the host."""

import os
import time
from time import time_ns

from ..futures import Future
from ._recorder import ENDED, PEER, STARTED
from ._work import Work

_PAUSE = 0.001


def _blocking_wait():
    return os.environ.get("TORCH_NCCL_BLOCKING_WAIT", os.environ.get("NCCL_BLOCKING_WAIT", "0")) == "1"


class NcclWork(Work):
    """One launch on a communicator's stream. `kept` are tensors whose memory it still needs."""

    def __init__(self, group, entry, event, device, timeout, results, kept):
        super().__init__()
        self._group, self._event, self._device, self._entry = group, event, device, entry
        self._kept, self._results, self._timeout = kept, results, timeout
        self._deadline = time.monotonic() + timeout.total_seconds()
        self._waits_on_host = False  # barriers
        entry[STARTED] = time_ns()

    def wait(self, timeout=None):
        """Let the current stream wait. The host waits too when a timeout is given, for barriers, and with
        TORCH_NCCL_BLOCKING_WAIT=1."""
        from .. import cuda

        self._raise()
        cuda.current_stream(self._device).wait_event(self._event)
        if timeout is not None or self._waits_on_host or _blocking_wait():
            self._wait_on_host(timeout or self._timeout)
        self._kept = None  # whoever reuses this memory now comes after the event
        return True

    def _wait_on_host(self, timeout):
        deadline = min(time.monotonic() + timeout.total_seconds(), self._deadline + 1)
        while not self.is_completed():
            if time.monotonic() > deadline:
                self._group.fail(self, f"timed out after {timeout}")
            self._raise()
            time.sleep(_PAUSE)
        self._raise()

    def _raise(self):
        if self._error is not None:
            raise self._error

    def overdue(self):
        return time.monotonic() > self._deadline

    def is_completed(self):
        """Whether the device is done."""
        if not self._done.is_set() and self._event.query():
            self._end(None)
        return self._done.is_set()

    def _end(self, error):
        with self._lock:
            if self._done.is_set():
                return
            self._error = error
            self._entry[ENDED] = self._entry[ENDED] or time_ns()
            self._kept = None
            self._done.set()

    def result(self):
        self.wait()
        return self._results

    def source_rank(self):
        return self._entry[PEER]

    def get_future(self):
        """A future of the output tensors: reading it orders the current stream behind the collective."""
        return StreamFuture(lambda: self._results, [self])


class StreamFuture(Future):
    """A value that streams still work on. It is there at once; who reads it waits on its stream."""

    def __init__(self, make, waits):
        super().__init__()
        self._waits = list(waits)
        try:
            self.set_result(make())
        except Exception as error:
            self.set_exception(error)

    def wait(self):
        for each in self._waits:
            each.wait()
        return super().wait()

    def value(self):
        for each in self._waits:
            each.wait()
        return super().value()

    def then(self, callback):
        """A future of callback(self), whose work goes to a stream of its own, behind this one's."""
        from .. import cuda

        stream = cuda.Stream()
        stream.wait_stream(cuda.current_stream())  # callbacks may read what the caller has just made
        with cuda.stream(stream):
            result = StreamFuture(lambda: callback(self), [])
        result._waits = [_StreamMark(stream)]
        return result


class _StreamMark:
    """The present place in a stream, to wait for."""

    def __init__(self, stream):
        self._event = stream.record_event()
        self._device = stream.device

    def wait(self):
        from .. import cuda

        cuda.current_stream(self._device).wait_event(self._event)
