"""Looks after the collectives under way: notes when they end, and ends what hangs or failed."""

import os
import signal
import sys
import threading

from . import _recorder
from ._errors import DistBackendError

_PERIOD = 0.1  # seconds between two looks


def error_handling():
    """TORCH_NCCL_ASYNC_ERROR_HANDLING: 0 does nothing, 2 aborts and raises at the next call or wait, 1 and 3,
    the default, end the process."""
    return int(os.environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "3"))


class Watchdog:
    """The thread of one group; it starts with the first collective."""

    def __init__(self, group):
        self._group, self._pending = group, []
        self._condition = threading.Condition()
        self._thread, self._stopped = None, False

    def add(self, work):
        with self._condition:
            self._pending.append(work)
            if self._thread is None:
                thread = threading.Thread(target=self._serve, daemon=True, name="nccl-watchdog")
                thread.start()
                self._thread = thread  # only one that runs can be waited for
            self._condition.notify()

    def stop(self):
        """Returns when all collectives are over, one way or the other."""
        with self._condition:
            self._stopped = True
            self._condition.notify()
        if self._thread not in (None, threading.current_thread()):
            self._thread.join()

    def pending(self):
        with self._condition:
            return list(self._pending)

    def _serve(self):
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._pending or self._stopped)
                if not self._pending:
                    return
                # Who ends the group waits for this thread.
                self._condition.wait(0.002 if self._stopped else _PERIOD)
                works = list(self._pending)
            over = [work for work in works if self._is_over(work)]
            with self._condition:
                self._pending = [work for work in self._pending if work not in over]
            del works, over  # the thread keeps no tensor alive while it waits

    def _is_over(self, work):
        try:
            if work.is_completed():
                return True
        except RuntimeError as error:  # the device failed
            work._end(error)
            return True
        handling = error_handling()
        if handling == 0:
            return False
        wrong = self._group.error()
        if wrong is None and work.overdue():
            wrong = f"timed out after {work._timeout}"
        if wrong is None:
            return False
        self._group.fail(work, wrong)
        if handling != 2:
            self._end_process(work)
        return True

    def _end_process(self, work):
        """What the device computed with is worthless now, and a program might not ask."""
        print(f"{work._error}\nTo avoid data inconsistency, this process ends.", file=sys.stderr, flush=True)
        _recorder.dump_if_wanted(self._group.rank)
        os.kill(os.getpid(), signal.SIGABRT)


def failure(group, entry, why):
    """The error of a collective that was given up."""
    what, number, limit = (entry[i] for i in (_recorder.WHAT, _recorder.NUMBER, _recorder.TIMEOUT))
    said = group._failed(entry, RuntimeError(why))
    return DistBackendError(
        f"[Rank {group.rank}] Watchdog caught collective operation timeout or error: WorkNCCL("
        f"SeqNum={number}, OpType={what.upper()}, Timeout(ms)={limit}): {said}"
    )
