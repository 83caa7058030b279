"""What a loader's worker does."""

import gc
import os
import select
import signal
from collections import OrderedDict, deque
from typing import NamedTuple

import rushlight
from rushlight._utils import ExceptionWrapper
from rushlight.utils.data._utils import seeding, worker
from rushlight.utils.data._utils.seeding import _generate_state  # noqa: F401

_CHECK_PARENT_MS = 1000  # where the system cannot tell at once


class WorkerInfo(NamedTuple):
    """Number, count, seed and dataset of a worker.

    Threads have random generators of their own, in `rng`: operators draw from its `torch_generator`
    by themselves; Python's and NumPy's global generators belong to the whole process, so datasets draw from
    `rng.random_generator` and `rng.numpy_generator` instead.
    """

    id: int
    num_workers: int
    seed: int
    dataset: object
    rng: object = None
    worker_method: str = "multiprocessing"


# --- messages


class _Task(NamedTuple):
    """Load a batch. `epoch` tells answers that nobody awaits any more."""

    epoch: int
    idx: int
    samples: object


class _ResumeIteration(NamedTuple):
    """A new epoch begins: start over, or `skip` that many samples of a stream and go on with `rng`."""

    seed: object = None
    epoch: int = 0
    skip: int = 0
    rng: object = None


class _StateRequest(NamedTuple):
    """Send the random state after a batch that was loaded lately."""

    epoch: int
    idx: int


class _StateAnswer(NamedTuple):
    rng: object


class _SendStates:
    """From now on send the random state with each batch: somebody asks all the time."""


class _IterableDatasetStopIteration(NamedTuple):
    """A worker's part of a stream has ended."""

    worker_id: int


class WorkerSetup(NamedTuple):
    """All that a worker is started with."""

    dataset_kind: int
    dataset: object
    auto_collation: bool
    collate_fn: object
    drop_last: bool
    base_seed: int
    init_fn: object
    worker_id: int
    num_workers: int
    shared_seed: object
    prefetch_factor: int
    parent_pid: int


class ManagerWatchdog:
    """Knows when the process with the given number ends, by default the one that started this process."""

    def __init__(self, pid=None):
        self.manager_pid = os.getppid() if pid is None else pid
        try:
            self.descriptor = os.pidfd_open(self.manager_pid)
        except ProcessLookupError:
            self.manager_pid = self.descriptor = None
        except (OSError, AttributeError):
            self.descriptor = None

    def is_alive(self):
        if self.manager_pid is None:
            return False
        if self.descriptor is not None:
            ended = select.poll()
            ended.register(self.descriptor, select.POLLIN)
            return not ended.poll(0)
        try:
            os.kill(self.manager_pid, 0)
        except ProcessLookupError:
            return False
        return True


class _Inbox:
    """Messages from the loader; ends when the loader closes the connection or its process is gone."""

    def __init__(self, channel, watchdog):
        self.channel = channel
        self._watchdog = watchdog
        self._read = deque()
        self._poll = select.poll()
        self._poll.register(channel.fileno(), select.POLLIN)
        if watchdog.descriptor is not None:
            self._poll.register(watchdog.descriptor, select.POLLIN)

    def _drain(self):
        try:
            while True:
                self._read.append(self.channel.receive(wait=False))
        except BlockingIOError:
            pass

    def next(self):
        """The next message, with tasks of epochs that have been left already skipped. EOFError at the end."""
        self._drain()
        while not self._read:
            self._poll.poll(None if self._watchdog.descriptor is not None else _CHECK_PARENT_MS)
            if not self._watchdog.is_alive():
                raise EOFError
            self._drain()
        return _first_wanted(self._read)


def _first_wanted(messages):
    """Takes the first message that is not a task of an epoch which was left already."""
    newest = max((m.epoch for m in messages if isinstance(m, _ResumeIteration)), default=0)
    while isinstance(messages[0], _Task) and messages[0].epoch < newest:
        messages.popleft()
    return messages.popleft()


class _Worker:
    """Loads batches: one fetcher an epoch, and a short memory of random states for exact resumption.

    `kind` is "process" or "thread"; `generators` gives and takes the state of its random generators."""

    kind, generators = "process", seeding

    def __init__(self, setup):
        self.setup = setup
        self.dataset = setup.dataset
        self.epoch = 0
        self.ended = False  # the stream is used up
        self.failure = None  # of the set-up: the answer to every task
        self.fetcher = None
        self.states = OrderedDict()
        self.sends_states = False

    def start(self):
        setup = self.setup
        self.introduce()
        try:
            self._seed_pipes(setup.shared_seed)
            if setup.init_fn is not None:
                setup.init_fn(setup.worker_id)
        except Exception:
            self._fail()

    def introduce(self):
        """Seeds the generators, and lets get_worker_info know."""
        setup = self.setup
        seed = seeding.seed_all(setup.base_seed, setup.worker_id)
        worker._worker_info = WorkerInfo(setup.worker_id, setup.num_workers, seed, self.dataset)

    def _fail(self):
        self.failure = ExceptionWrapper(where=f"in DataLoader worker {self.kind} {self.setup.worker_id}")

    def _seed_pipes(self, seed):
        """Data pipes draw from generators that all workers seed alike."""
        if seed is None:
            return
        from rushlight.utils.data.graph_settings import apply_random_seed

        self.dataset = apply_random_seed(self.dataset, rushlight.Generator().manual_seed(seed))

    def begin_epoch(self, message):
        self.epoch, self.ended = message.epoch, False
        self.states.clear()
        if self.failure is not None:
            return
        try:
            if message.epoch > 0:
                self._seed_pipes(message.seed)
            self._make_fetcher()
            if message.skip:
                self.fetcher.skip(message.skip)
            if message.rng is not None:
                self.generators.set_state(message.rng)
            self._remember(-1)
        except Exception:
            self._fail()

    def _make_fetcher(self):
        from rushlight.utils.data.dataloader import _DatasetKind

        s = self.setup
        self.fetcher = _DatasetKind.create_fetcher(
            s.dataset_kind, self.dataset, s.auto_collation, s.collate_fn, s.drop_last
        )

    def load(self, task):
        """The answer to a task."""
        if self.failure is not None:
            return self.failure
        try:
            data = self.fetcher.fetch(task.samples)
        except StopIteration as e:
            from rushlight.utils.data.dataloader import _DatasetKind

            if self.setup.dataset_kind != _DatasetKind.Iterable:
                return self._wrap(e)
            self.ended = True
            return _IterableDatasetStopIteration(self.setup.worker_id)
        except Exception as e:
            data = self._wrap(e)
        self._remember(task.idx)
        return data

    def _wrap(self, error):
        return ExceptionWrapper(
            (type(error), error, error.__traceback__),
            where=f"in DataLoader worker {self.kind} {self.setup.worker_id}",
        )

    def _remember(self, idx):
        self.states[idx] = self.generators.get_state()
        # The loader asks about the batch that it gave out last: what it prefetches was loaded since.
        while len(self.states) > self.setup.prefetch_factor * self.setup.num_workers + 2:
            self.states.popitem(last=False)

    def state_after(self, request):
        return _StateAnswer(self.states.get(request.idx) if request.epoch == self.epoch else None)


def _send_answer(channel, task, data, worker):
    state = worker.states.get(task.idx) if worker.sends_states else None
    try:
        channel.send((task.epoch, task.idx, data, state))
    except (BrokenPipeError, ConnectionResetError):
        raise EOFError from None
    except Exception as e:  # what the dataset gave can't be sent
        channel.send((task.epoch, task.idx, worker._wrap(e), state))


def _prepare_process():
    gc.freeze()  # what was inherited by fork stays shared: the collector would write to all of it
    # Ctrl-C reaches every process of the terminal; the loader decides what it means for its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    rushlight.set_num_threads(1)
    from rushlight.multiprocessing import _set_thread_name

    _set_thread_name("pt_data_worker")


def _worker_loop(setup, channel, inherited):
    """Runs in the worker process until the loader closes the connection or ends."""
    for other in inherited:
        other.close()
    _prepare_process()
    worker = _Worker(setup)
    inbox = _Inbox(channel, ManagerWatchdog(setup.parent_pid))
    try:
        _serve(worker, inbox, channel)
    finally:
        channel.close()


def _serve(worker, inbox, channel):
    """Answers messages until the loader has no more of them."""
    worker.start()
    try:
        while True:
            message = inbox.next()
            if isinstance(message, _ResumeIteration):
                worker.begin_epoch(message)
            elif isinstance(message, _StateRequest):
                channel.send(worker.state_after(message))
            elif isinstance(message, _SendStates):
                worker.sends_states = True
            elif not worker.ended:
                _send_answer(channel, message, worker.load(message), worker)
            del message
    except EOFError:
        pass
