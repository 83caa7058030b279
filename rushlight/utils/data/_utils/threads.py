"""The workers of a loader's iterator as threads of this process."""

import os
import queue
import threading
import time
from collections import deque

from rushlight import _C
from rushlight.utils.data._utils import seeding, worker
from rushlight.utils.data._utils.processes import WorkerDied
from rushlight.utils.data._utils.serving import WorkerInfo, WorkerSetup, _first_wanted, _serve, _Worker


class _ThreadWorker(_Worker):
    kind = "thread"

    def introduce(self):
        setup = self.setup
        self.generators = rng = seeding.WorkerRNG(setup.base_seed, setup.worker_id)
        worker._of_thread.info = WorkerInfo(
            setup.worker_id, setup.num_workers, rng.seed, self.dataset, rng, "thread"
        )
        _C._use_generator(rng.torch_generator)


class _Channel:
    """Between the loader and one thread: the loader posts messages, the thread takes and answers them."""

    def __init__(self, number, answers):
        self._number, self._answers = number, answers
        self._messages, self._changed, self._closed = deque(), threading.Condition(), False

    def post(self, message):
        with self._changed:
            self._messages.append(message)
            self._changed.notify()

    def shut(self):
        with self._changed:
            self._closed = True
            self._changed.notify()

    def next(self):
        """The next message for the thread; EOFError once the loader has shut the channel."""
        with self._changed:
            self._changed.wait_for(lambda: self._messages or self._closed)
            if self._closed:
                raise EOFError
            return _first_wanted(self._messages)

    def send(self, answer):
        if not self._closed:  # else nobody awaits it
            self._answers.put((self._number, answer))


class _Ended:
    """In place of an answer: what ended a thread."""

    def __init__(self, error):
        self.error = error


def _run(setup, channel):
    try:
        _serve(_ThreadWorker(setup), channel, channel)
    except BaseException as error:
        channel.send(_Ended(error))


class Threads:
    """Threads with a channel to each: the same interface as `processes.Workers`.

    A busy thread can't be ended; :meth:`shut_down` leaves it to finish what it is doing."""

    def __init__(self, count, setup):
        self._answers = queue.SimpleQueue()
        self.channels = [_Channel(i, self._answers) for i in range(count)]
        self.workers = []
        self._owner = os.getpid()
        for i, channel in enumerate(self.channels):
            own = WorkerSetup(worker_id=i, num_workers=count, parent_pid=self._owner, **setup)
            thread = threading.Thread(
                target=_run, args=(own, channel), daemon=True, name=f"pt_data_worker_{i}"
            )
            thread.start()
            self.workers.append(thread)

    def receive(self, timeout=None):
        """All answers that are there, as (worker, answer); waits for one. Empty when the time is over."""
        answers = []
        try:
            answers.append(self._answers.get(timeout != 0, timeout))
            while True:
                answers.append(self._answers.get_nowait())
        except queue.Empty:
            pass
        for i, answer in answers:
            if isinstance(answer, _Ended):
                raise WorkerDied(
                    f"DataLoader worker thread {i} ended: {type(answer.error).__name__}: {answer.error}"
                ) from answer.error
        return answers

    def shut_down(self, grace):
        """Ends all threads; waits up to `grace` seconds for those that are busy."""
        if os.getpid() != self._owner:
            return
        for channel in self.channels:
            channel.shut()
        end = time.monotonic() + grace
        for thread in self.workers:
            if thread is not threading.current_thread():
                thread.join(max(0, end - time.monotonic()))
