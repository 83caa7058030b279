"""Threads that the system refuses: what needed one can be asked again, and ended."""

import threading

import pytest

from rushlight.distributed._nccl_watchdog import Watchdog
from rushlight.distributed._work import Worker


@pytest.mark.parametrize("runs", [False, True])  # whether the thread had started before start() failed
def test_a_worker_whose_thread_does_not_start_works_later(monkeypatch, runs):
    started = threading.Thread.start
    order = []

    def refused(thread):
        if runs:
            started(thread)
        raise MemoryError("no thread left")

    worker = Worker("test")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        with pytest.raises(MemoryError, match="no thread"):
            worker.submit(lambda: order.append(0))
        worker.stop()
    for i in range(1, 4):
        work = worker.submit(lambda i=i: order.append(i))
    assert work.wait()
    worker.stop()
    assert order == [1, 2, 3]
    for thread in threading.enumerate():
        if thread.name == "test":
            thread.join(30)
            assert not thread.is_alive()


def test_a_watchdog_whose_thread_does_not_start_can_be_stopped(monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    watchdog = Watchdog(None)
    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(RuntimeError, match="can't start"):
        watchdog.add(object())
    watchdog.stop()
