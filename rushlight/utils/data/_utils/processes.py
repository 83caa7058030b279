"""The worker processes of a loader's iterator: started, watched, ended."""

import os
import select
import time
import warnings
import weakref
from multiprocessing.connection import wait
from pickle import PicklingError

from rushlight.utils.data import _utils
from rushlight.utils.data._utils import signal_handling
from rushlight.utils.data._utils.channel import Channel
from rushlight.utils.data._utils.serving import WorkerSetup, _worker_loop

_TERM_GRACE = 1.0  # seconds between SIGTERM and SIGKILL

# The loaders' ends of all connections in this process; a forked worker closes those it inherits.
_open_ends: weakref.WeakSet = weakref.WeakSet()


class WorkerDied(RuntimeError):
    """Raised where an answer was awaited from a process that is gone."""


class Workers:
    """Processes with a channel to each. :meth:`shut_down` may be called again and again, and does nothing in
    processes other than the one that started them."""

    def __init__(self, context, count, setup, outstanding):
        self.workers = []
        self.channels = []
        self.failure = None
        self._owner = os.getpid()
        self._dead = set()
        self._poll = select.poll()
        self._by_descriptor = {}
        try:
            for i in range(count):
                self._start(context, i, count, setup, outstanding)
        except BaseException:
            self.shut_down(_utils.BUSY_GRACE)
            raise

    def _start(self, context, i, count, setup, outstanding):
        ours, theirs = Channel.pair(outstanding)
        forks = context.get_start_method() == "fork"
        inherited = [*_open_ends, ours] if forks else []
        process = context.Process(
            target=_worker_loop,
            args=(
                WorkerSetup(worker_id=i, num_workers=count, parent_pid=self._owner, **setup),
                theirs,
                inherited,
            ),
            daemon=True,
        )
        try:
            process.start()
        except BaseException as e:
            ours.close()
            if isinstance(e, (TypeError, AttributeError, PicklingError)):
                _warn_of_pickling(context.get_start_method())
            raise
        finally:
            theirs.close()
        _open_ends.add(ours)
        self.workers.append(process)
        self.channels.append(ours)
        for descriptor in (ours.fileno(), process.sentinel):
            self._poll.register(descriptor, select.POLLIN)
            self._by_descriptor[descriptor] = i

    def receive(self, timeout=None):
        """All messages that are there, as (worker, message); waits for one. Empty when the time is over.

        Raises WorkerDied if a process is gone, unless it left messages."""
        messages = []
        for descriptor, _ in self._poll.poll(None if timeout is None else max(0, timeout * 1000)):
            i = self._by_descriptor[descriptor]
            if i not in self._dead:
                self._drain(i, messages)
        if self._dead:
            self._raise_dead()
        return messages

    def _drain(self, i, messages):
        channel = self.channels[i]
        try:
            while True:
                messages.append((i, channel.receive(wait=False)))
        except BlockingIOError:
            channel.flush()
            if not self._ended(i):
                return
        except (EOFError, FileNotFoundError):  # the second: its shared memory went with it
            pass
        self._dead.add(i)

    def _ended(self, i):
        return bool(wait([self.workers[i].sentinel], 0))

    def _raise_dead(self):
        dead = [self.workers[i] for i in sorted(self._dead)]
        for process in dead:
            process.join(_TERM_GRACE)
        raise WorkerDied(" ".join(signal_handling.describe_exit(process) for process in dead))

    def shut_down(self, grace):
        """Ends all processes: idle ones at once, others after they had `grace` seconds to finish."""
        if os.getpid() != self._owner:
            return
        for channel in self.channels:
            channel.shut()
        end = time.monotonic() + grace
        for process in self.workers:
            process.join(max(0, end - time.monotonic()))
        running = [process for process in self.workers if process.is_alive()]
        for process in running:
            process.terminate()
        end = time.monotonic() + _TERM_GRACE
        for process in running:
            process.join(max(0, end - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()


def _warn_of_pickling(method):
    warnings.warn(
        f"DataLoader: a worker process could not be started by {method!r}: dataset, collate_fn and "
        "worker_init_fn must be picklable for it, their classes and functions found by name in a module; "
        "multiprocessing_context='fork' needs no pickling",
        stacklevel=6,
    )
