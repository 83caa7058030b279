"""Collectives under way."""

from __future__ import annotations

import queue
import threading
from datetime import timedelta
from typing import Any

from rushlight._command.names import is_own, show_from

from ._errors import DistBackendError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight import Tensor
    from rushlight.futures import Future


class Work:
    """A collective that was started with `async_op=True`; its tensors must not be touched before `wait`."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._error: Any = None
        self._results = []
        self._future: Any = None
        self._lock = threading.Lock()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Block until the collective is over; raises what it raised, or DistBackendError after `timeout`."""
        if not self._done.wait(timeout.total_seconds() if timeout else None):
            raise DistBackendError(f"Work.wait: not finished within {timeout}")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        return self._done.is_set()

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Any:
        return self._error

    def result(self) -> list[Tensor]:
        """The output tensors."""
        self.wait()
        return self._results

    def synchronize(self) -> None:
        self.wait()

    def get_future(self) -> Future:
        """A `torch.futures.Future` of the output tensors."""
        from ..futures import Future

        with self._lock:
            if self._future is None:
                self._future = Future()
                if self._done.is_set():
                    self._fulfil()
            return self._future

    def _fulfil(self):
        if self._error is not None:
            self._future.set_exception(self._error)
        else:
            self._future.set_result(self._results)

    def _run(self, body):
        try:
            self._results = body()
        except BaseException as error:
            self._error = error
        with self._lock:
            self._done.set()
            if self._future is not None:
                self._fulfil()


class MessageWork(Work):
    """A message to or from one rank: whoever waits moves it."""

    def __init__(self, move, results) -> None:
        super().__init__()
        self._move, self._results, self._source = move, results, -1

    def wait(self, timeout: timedelta | None = None) -> bool:
        if not self._done.is_set():
            self._source = self._move(timeout)
            self._done.set()
        return True

    def source_rank(self):
        """The rank that sent what was received."""
        self.wait()
        return self._source

    _source_rank = source_rank


def finished(results):
    """The work of a collective that ran already."""
    work = Work()
    work._results = results
    work._done.set()
    return work


def future_of(work: Any):
    """What to wait for without arguments: `wait` of a work that a program wrote may demand a timeout."""
    return work if is_own(type(work).__module__) else work.get_future()


class Worker:
    """Runs collectives one after the other on a thread of its own, which starts with the first."""

    def __init__(self, name: str) -> None:
        self._name, self._tasks = name, queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, body) -> Work:
        if self._thread is None:
            self._begin()
        work = Work()
        self._tasks.put((work, body))
        return work

    def _begin(self):
        tasks: queue.SimpleQueue = queue.SimpleQueue()
        thread = threading.Thread(target=self._serve, args=[tasks], daemon=True, name=self._name)
        try:
            thread.start()
        except BaseException:  # without memory it may have started all the same
            tasks.put(None)
            raise
        self._tasks, self._thread = tasks, thread

    def _serve(self, tasks):
        while (task := tasks.get()) is not None:
            work, body = task
            work._run(body)
            del task, work, body  # the thread keeps no tensor alive while it waits

    def stop(self):
        if self._thread is not None:
            self._tasks.put(None)
            if self._thread is not threading.current_thread():
                self._thread.join()
            self._thread = None


show_from("distributed.distributed_c10d", Work)
