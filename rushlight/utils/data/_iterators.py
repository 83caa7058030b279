"""The iterators of a loader: in this process, and over worker processes."""

import itertools
import warnings
import weakref

import rushlight
from rushlight._utils import ExceptionWrapper
from rushlight.utils.data import _resume, _utils
from rushlight.utils.data._utils import seeding
from rushlight.utils.data._utils.fetch import SeededIndex
from rushlight.utils.data._utils.pin_memory import pin_memory
from rushlight.utils.data._utils.serving import (
    _IterableDatasetStopIteration,
    _ResumeIteration,
    _SendStates,
    _StateAnswer,
    _StateRequest,
    _Task,
)
from rushlight.utils.data.dataset import _is_pipe

_OFTEN = 16  # batches


def _draw_seed(generator):
    return rushlight.empty((), dtype=rushlight.int64).random_(generator=generator).item()


class _BaseDataLoaderIter:
    """One pass over a loader's batches, or several where workers persist."""

    def __init__(self, loader, resume=None):
        self._beginning = _resume.capture(loader)
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._shared_seed = None
        self._seed_pipes(loader)
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._samples_per_batch = getattr(loader, "batch_size", None) or 1
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._persistent_workers = loader.persistent_workers
        self._pin_memory = loader.pin_memory and _accelerator_for_pinning(loader)
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        # One draw for each iterator, before the sampler's own, even where no worker will be seeded with it.
        self._drew_seed = resume is None or resume["drew_seed"]
        drawn = _draw_seed(loader.generator) if self._drew_seed else None
        self._base_seed: int = drawn if resume is None else resume["base_seed"]  # type: ignore[assignment]
        self._seeds_batches = getattr(loader, "seed_batches", False)
        self._numbered = 0
        self._num_yielded = 0
        self._finished = False

    def _seed_pipes(self, loader):
        if _is_pipe(self._dataset, "IterDataPipe"):
            from rushlight.utils.data.graph_settings import apply_random_seed

            self._shared_seed = _draw_seed(loader.generator)
            generator = rushlight.Generator().manual_seed(self._shared_seed)
            self._dataset = apply_random_seed(self._dataset, generator)

    def __iter__(self):
        return self

    def _reset(self, loader, first_iter=False):
        if not first_iter:
            self._beginning = _resume.capture(loader)
            self._drew_seed = False
            self._seed_pipes(loader)
            if self._seeds_batches:  # an epoch is that of a loader whose workers do not persist
                self._drew_seed, self._base_seed = True, _draw_seed(loader.generator)
        self._sampler_iter = iter(self._index_sampler)
        self._numbered = 0
        self._num_yielded = 0
        self._finished = False
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self):
        index = next(self._sampler_iter)
        if not self._seeds_batches:
            return index
        self._numbered += 1
        return SeededIndex(index, self._base_seed + self._numbered)

    def _next_data(self):
        raise NotImplementedError

    def __next__(self):
        if not rushlight._C._profiler_enabled():
            return self._next()
        with rushlight.profiler.record_function(f"enumerate(DataLoader)#{type(self).__name__}.__next__"):
            return self._next()

    def _next(self):
        try:
            data = self._next_data()
        except StopIteration:
            self._finished = True
            raise
        self._num_yielded += 1
        expected = self._IterableDataset_len_called
        if expected is not None and self._num_yielded > expected:
            self._warn_of_length(expected)
        return data

    def _state(self):
        """What another iterator needs to go on from here."""
        return {
            "num_yielded": self._num_yielded,
            "base_seed": self._base_seed,
            "drew_seed": self._drew_seed,
            "num_workers": self._num_workers,
        }

    def _warn_of_length(self, expected):
        from rushlight.utils.data.dataloader import _DatasetKind

        if self._dataset_kind != _DatasetKind.Iterable:
            return
        text = (
            f"Length of IterableDataset {self._dataset} was reported to be {expected}"
            f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if self._num_workers > 0:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
            )
        warnings.warn(text, stacklevel=3)

    def __len__(self):
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


def _accelerator_for_pinning(loader):
    accelerator = getattr(rushlight, "accelerator", None)
    if accelerator is not None and accelerator.is_available():
        return True
    warnings.warn(
        "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't "
        "be used.",
        stacklevel=5,
    )
    return False


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader, resume=None):
        super().__init__(loader, resume)
        from rushlight.utils.data.dataloader import _DatasetKind

        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if _is_pipe(self._dataset, "_DataPipe"):
            from rushlight.utils.data.graph_settings import apply_sharding

            apply_sharding(self._dataset, 1, 0)
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )
        if resume is not None:
            self._take_over(resume)

    def _next_data(self):
        data = self._dataset_fetcher.fetch(self._next_index())
        return pin_memory(data) if self._pin_memory else data

    def _take_over(self, state):
        """Goes on where another iterator was."""
        from rushlight.utils.data.dataloader import _DatasetKind

        for _ in range(state["num_yielded"]):
            self._next_index()
        if self._dataset_kind == _DatasetKind.Iterable:
            self._dataset_fetcher.skip(state["num_yielded"] * self._samples_per_batch)
        self._num_yielded = state["num_yielded"]


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches that worker processes, or threads, load ahead of time.

    Batches are numbered as they are asked for; workers get the numbers in turn. `_task_info` says
    for each number that was asked for and not given out yet which worker has it, and its data once they are
    here.
    """

    def __init__(self, loader, resume=None):
        super().__init__(loader, resume)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        if self._num_workers <= 0:
            raise AssertionError("num_workers must be greater than 0 for MultiProcessingDataLoaderIter")
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._epoch = -1
        self._shutdown = False
        # Packages iterate over loaders of their own, which have PyTorch's attributes alone.
        self._worker_method = getattr(loader, "worker_method", "multiprocessing")
        self._group = self._start_workers(loader)
        self._workers = self._group.workers
        self._end = weakref.finalize(self, self._group.shut_down, _utils.BUSY_GRACE)
        self._answered_state = None
        self._sends_states = False
        self._reset(loader, first_iter=True, resume=resume)

    def _start_workers(self, loader):
        setup = self._worker_setup(loader)
        if self._worker_method == "thread":
            from rushlight.utils.data._utils.threads import Threads

            return Threads(self._num_workers, setup)
        from rushlight.utils.data._utils.processes import Workers

        if packed := getattr(loader, "_packed_dataset", None):
            setup["dataset"] = packed(self._dataset)
        context = loader.multiprocessing_context or _default_context()
        outstanding = self._prefetch_factor * (1 if self._in_order else self._num_workers)
        return Workers(context, self._num_workers, setup, outstanding)

    def _worker_setup(self, loader):
        init_fn = loader.worker_init_fn
        if _is_pipe(self._dataset, "_DataPipe"):
            from rushlight.utils.data.graph_settings import _ShardingInit

            init_fn = _ShardingInit(init_fn)
        return {
            "dataset_kind": self._dataset_kind,
            "dataset": self._dataset,
            "auto_collation": self._auto_collation,
            "collate_fn": self._collate_fn,
            "drop_last": self._drop_last,
            "base_seed": self._base_seed,
            "init_fn": init_fn,
            "shared_seed": self._shared_seed,
            "prefetch_factor": self._prefetch_factor,
        }

    def _reset(self, loader, first_iter=False, resume=None):
        super()._reset(loader, first_iter)
        n = self._num_workers
        self._epoch += 1
        self._send_idx = 0  # of the next batch to ask for
        self._rcvd_idx = 0  # of the next batch to give out
        self._task_info = {}
        self._tasks_outstanding = 0
        self._workers_status = [True] * n
        self._workers_num_tasks = [0] * n
        self._given_out = [0] * n  # batches that each worker contributed
        self._last_idx = [-1] * n  # of the newest one
        self._last_state = [None] * n  # the worker's random state after it, if it sent that
        self._asked_for_state = None  # when
        self._first_worker = 0
        skips, states = [0] * n, [None] * n
        if resume is not None:
            skips, states = self._take_over(resume)
        self._worker_queue_idx_cycle = itertools.islice(itertools.cycle(range(n)), self._first_worker, None)
        for channel, skip, state in zip(self._group.channels, skips, states):
            channel.post(_ResumeIteration(self._shared_seed, self._epoch, skip, state))
        for _ in range(self._prefetch_factor * n):
            self._try_put_index()

    # --- asking

    def _try_put_index(self):
        most = self._prefetch_factor * self._num_workers
        if self._tasks_outstanding >= most:
            raise AssertionError("Number of outstanding tasks exceeded maximum allowed tasks")
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker = self._next_worker(most)
        if worker is None:
            return
        self._group.channels[worker].post(_Task(self._epoch, self._send_idx, index))
        self._task_info[self._send_idx] = (worker,)
        self._workers_num_tasks[worker] += 1
        self._tasks_outstanding += 1
        self._send_idx += 1

    def _next_worker(self, most):
        """The next one in turn that has not ended, and without an order that is not busier than its share."""
        for _ in range(self._num_workers):
            worker = next(self._worker_queue_idx_cycle)
            if self._workers_status[worker] and (
                self._in_order or self._workers_num_tasks[worker] < most // sum(self._workers_status)
            ):
                return worker
        return None

    # --- answers

    def _next_data(self):
        if self._shutdown:
            raise StopIteration
        self._read_answers(wait=False)
        while True:
            self._skip_ended()
            if self._rcvd_idx == self._send_idx:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            idx = self._ready()
            if idx is not None:
                return self._give_out(idx)
            self._read_answers(wait=True)

    def _skip_ended(self):
        """Passes over numbers that were given out already, or that nobody will answer."""
        while self._rcvd_idx < self._send_idx:
            info = self._task_info.get(self._rcvd_idx)
            if info is not None:
                if len(info) == 2 or self._workers_status[info[0]]:
                    return
                del self._task_info[self._rcvd_idx]
            self._rcvd_idx += 1

    def _ready(self):
        """The number of a batch to give out, if there is one."""
        if len(self._task_info[self._rcvd_idx]) == 2:
            return self._rcvd_idx
        if self._in_order:
            return None
        return next((idx for idx, info in self._task_info.items() if len(info) == 2), None)

    def _give_out(self, idx):
        worker, (data, state) = self._task_info.pop(idx)
        if idx == self._rcvd_idx:
            self._rcvd_idx += 1
        self._workers_num_tasks[worker] -= 1
        self._try_put_index()
        self._given_out[worker] += 1
        self._last_idx[worker], self._last_state[worker] = idx, state
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return pin_memory(data) if self._pin_memory else data

    def _read_answers(self, wait):
        timeout = (self._timeout or None) if wait else 0
        for worker, message in self._receive(timeout):
            self._take_answer(worker, message)

    def _receive(self, timeout):
        from rushlight.utils.data._utils.processes import WorkerDied

        try:
            messages = self._group.receive(timeout)
        except WorkerDied as e:
            self._shutdown_workers()
            raise RuntimeError(str(e)) from None
        if not messages and timeout:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        return messages

    def _take_answer(self, worker, message):
        if isinstance(message, _StateAnswer):
            self._answered_state = message
            return
        epoch, idx, data, state = message
        if epoch != self._epoch:
            return  # of an epoch that was left before its end
        self._tasks_outstanding -= 1
        if isinstance(data, _IterableDatasetStopIteration):
            self._workers_status[worker] = False
            self._drop_tasks_of(worker)
            self._try_put_index()
        else:
            self._task_info[idx] = (worker, (data, state))

    def _drop_tasks_of(self, worker):
        """An ended worker answers nothing more."""
        silent = [idx for idx, info in self._task_info.items() if info == (worker,)]
        for idx in silent:
            del self._task_info[idx]
        self._tasks_outstanding -= len(silent) - 1  # one of them was answered, by the end
        self._workers_num_tasks[worker] -= len(silent)

    # --- resuming

    def _state(self):
        self._skip_ended()
        following = self._task_info.get(self._rcvd_idx)
        self._expect_questions()
        return {
            **super()._state(),
            "given_out": list(self._given_out),
            "next_worker": following[0] if following else 0,
            "worker_method": self._worker_method,
            "rng": [seeding.to_plain(self._state_of(i)) for i in range(self._num_workers)],
        }

    def _expect_questions(self):
        """A program that asks at almost every batch should not have to wait for workers each time."""
        asked, self._asked_for_state = self._asked_for_state, self._num_yielded
        if asked is not None and asked < self._num_yielded < asked + _OFTEN and not self._sends_states:
            self._sends_states = True
            for channel in self._group.channels:
                channel.post(_SendStates())

    def _state_of(self, worker):
        """A worker's random state after its batch that was given out last."""
        if self._last_state[worker] is not None:
            return self._last_state[worker]
        self._answered_state = None
        self._group.channels[worker].post(_StateRequest(self._epoch, self._last_idx[worker]))
        while self._answered_state is None:
            for i, message in self._receive(None):
                self._take_answer(i, message)
        return self._answered_state.rng

    def _take_over(self, state):
        """Counts of samples to skip and random states for each worker, from another iterator's state."""
        from rushlight.utils.data.dataloader import _DatasetKind

        n = self._num_workers
        stream = self._dataset_kind == _DatasetKind.Iterable
        self._num_yielded = state["num_yielded"]
        for _ in range(state["num_yielded"]):
            self._next_index()
        if state["num_workers"] != n:
            if stream:
                raise RuntimeError(
                    f"DataLoader.load_state_dict: a stream read by {state['num_workers']} workers can't be "
                    f"taken over by {n}"
                )
            self._first_worker = state["num_yielded"] % n
            return [0] * n, [None] * n
        self._first_worker = state["next_worker"]
        self._given_out = list(state["given_out"])
        skips = [batches * self._samples_per_batch if stream else 0 for batches in self._given_out]
        if state.get("worker_method", "multiprocessing") != self._worker_method:
            return skips, [None] * n
        return skips, [seeding.from_plain(rng) for rng in state["rng"]]

    # --- the end

    def _shutdown_workers(self):
        if self._shutdown:
            return
        self._shutdown = True
        self._end.detach()
        self._task_info.clear()
        grace = _utils.MP_STATUS_CHECK_INTERVAL if self._tasks_outstanding <= 0 else _utils.BUSY_GRACE
        self._group.shut_down(grace)


def _default_context():
    import multiprocessing

    return multiprocessing.get_context()
