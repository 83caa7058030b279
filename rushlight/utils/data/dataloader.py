"""The loader: a dataset, an order, and a collation, as an iterable of batches."""

from __future__ import annotations

from rushlight._errors.advice import advised
from rushlight.utils.data._generic import type_variable
from rushlight.utils.data._utils.collate import default_collate, default_convert
from rushlight.utils.data._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
from rushlight.utils.data._utils.worker import get_worker_info
from rushlight.utils.data.dataset import Dataset, IterableDataset, _is_pipe
from rushlight.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Generic, TypeVar

    from rushlight import Generator
    from rushlight.utils.data._iterators import _BaseDataLoaderIter as _BaseDataLoaderIter
    from rushlight.utils.data._iterators import (
        _MultiProcessingDataLoaderIter as _MultiProcessingDataLoaderIter,
    )
    from rushlight.utils.data._iterators import _SingleProcessDataLoaderIter as _SingleProcessDataLoaderIter

    T_co = TypeVar("T_co", covariant=True)
else:
    from rushlight.utils.data._generic import Generic, T_co

__all__ = ["DataLoader", "get_worker_info", "default_collate", "default_convert"]


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler):
    """The order of a stream, which is not ours to choose."""

    def __iter__(self):
        while True:
            yield None


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader(Generic[T_co]):
    """Iterates over a dataset in batches.

    Args:
        dataset: what to load from; an IterableDataset is read as a stream.
        batch_size: samples in a batch; None turns batching off.
        shuffle: visit the samples in a new random order each epoch.
        sampler, batch_sampler: an order of one's own, by index or by batch.
        collate_fn: merges a list of samples into a batch.
        drop_last: leave out a last batch that is not full.
        generator: where random orders come from.
        num_workers: how many workers load batches ahead of time, in this process if 0.
        pin_memory: whether batches are put into page-locked memory, for copies to a device.
        pin_memory_device: which device that is for.
        timeout: seconds that a batch may take, any time if 0.
        worker_init_fn: is called in each worker, with its number.
        multiprocessing_context: how worker processes start: a context, or "fork", "spawn", "forkserver".
        prefetch_factor: batches that each worker loads ahead; 2 if there are workers.
        persistent_workers: whether workers stay for the next epoch.
        in_order: whether batches come in the order of the sampler.
        worker_method: what workers are: "multiprocessing", or "thread" for threads of this process, which
            start at once and hand batches over as they are, for datasets that spend their time outside of
            the interpreter (files, decoders, operators). They share the dataset, draw random numbers from
            `get_worker_info().rng`, and can't be ended while they are busy.
        seed_batches: whether Python's, NumPy's and Rushlight's generators are seeded for each batch, with its
            number in the epoch, and put back after it. Random augmentation is then the same for any number of
            workers and after any resumption; without it, workers have streams of their own, as in PyTorch.
        pack_dataset: whether lists and dicts in the dataset travel to worker processes as one buffer in
            shared memory (see `PackedList`): None packs long ones of plain data, True packs all.

    Example:
        >>> loader = torch.utils.data.DataLoader(list(range(5)), batch_size=2)
        >>> [batch.tolist() for batch in loader]
        [[0, 1], [2, 3], [4]]
    """

    _DataLoader__initialized = False

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[int] | Iterable[int] | None = None,
        batch_sampler: Sampler[list[int]] | Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        worker_method: str = "multiprocessing",
        pack_dataset: bool | None = None,
        seed_batches: bool = False,
    ) -> None:
        _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        _check_worker_method(worker_method, multiprocessing_context)
        self.worker_method, self.pack_dataset = worker_method, pack_dataset
        self._packing: Any = None
        self.seed_batches = seed_batches
        if seed_batches and isinstance(dataset, IterableDataset):
            raise ValueError(
                "seed_batches: workers share out a stream themselves, so its batches have no numbers"
            )
        self.dataset: Any = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if _is_pipe(dataset, "_DataPipe"):
            self.dataset, shuffle = _wrap_pipe(dataset, shuffle)
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            _check_stream_options(shuffle, sampler, batch_sampler)
        else:
            self._dataset_kind = _DatasetKind.Map
        shuffle = bool(shuffle)

        if sampler is not None and shuffle:
            raise advised(ValueError("sampler option is mutually exclusive with shuffle"))
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                    "drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
            )

        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            else:
                sampler = (
                    RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
                )
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)

        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called: Any = None
        self._iterator: Any = None  # that persistent workers serve
        self._current: Any = None  # the newest iterator, weakly
        self._loaded_state: Any = None
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self) -> Any:
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
                    f"but got num_workers={self.num_workers}"
                )
            context = _process_context(context)
        self.__multiprocessing_context = context

    def __setattr__(self, name, value):
        if self.__initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self, resume=None):
        from rushlight.utils.data import _iterators

        if self.num_workers == 0:
            return _iterators._SingleProcessDataLoaderIter(self, resume)
        return _iterators._MultiProcessingDataLoaderIter(self, resume=resume)

    def _packed_dataset(self, dataset):
        """What worker processes are to read from in place of the dataset."""
        if self.pack_dataset is False:
            return dataset
        from rushlight.utils.data._packing import Packing

        if self._packing is None:
            self._packing = Packing(everything=bool(self.pack_dataset))
        return self._packing.of_dataset(dataset)

    def __getstate__(self):
        return {**self.__dict__, "_current": None, "_packing": None}

    def __iter__(self) -> Iterator[Any]:
        from weakref import ref

        from rushlight.utils.data import _resume

        state, self._loaded_state = self._loaded_state, None
        if state is None or state["iterator"] is None:
            iterator = self._new_epoch(None)
        else:
            with _resume.at_beginning_of(self, state["beginning"]):
                iterator = self._new_epoch(state["iterator"])
        self._current = ref(iterator)
        return iterator

    def _new_epoch(self, resume):
        if self.num_workers == 0 or not self.persistent_workers:
            return self._get_iterator(resume)
        if self._iterator is None or self._iterator._shutdown:
            self._iterator = self._get_iterator(resume)
        else:
            self._iterator._reset(self, resume=resume)
        return self._iterator

    def state_dict(self) -> dict[str, Any]:
        """Where the newest iteration stands: a loader made alike, in this process or another, goes on with
        the very next batch after :meth:`load_state_dict`.

        Between epochs it holds the states of the loader's own generators and samplers. Those of the global
        generators are the program's to save. Not exact are: streams of other than ``in_order`` batches, and
        random numbers drawn by worker processes if the number of workers changes.
        """
        if self._loaded_state is not None:
            return self._loaded_state
        from rushlight.utils.data import _resume

        iterator = self._current and self._current()
        if iterator is None or iterator._finished:
            return {"version": 1, "beginning": _resume.to_plain(_resume.capture(self)), "iterator": None}
        beginning = _resume.to_plain(iterator._beginning)
        return {"version": 1, "beginning": beginning, "iterator": iterator._state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Makes the next iteration go on where :meth:`state_dict` was called."""
        if not isinstance(state_dict, dict) or state_dict.get("version") != 1:
            raise ValueError("DataLoader.load_state_dict: this is not what DataLoader.state_dict gave")
        self._loaded_state = state_dict
        if state_dict["iterator"] is None:
            from rushlight.utils.data import _resume

            _resume.restore_own(self, state_dict["beginning"])

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Iterable:
            length = self._IterableDataset_len_called = len(self.dataset)
            if self.batch_size is not None:
                length = length // self.batch_size if self.drop_last else -(-length // self.batch_size)
            return length
        return len(self._index_sampler)

    def check_worker_number_rationality(self) -> None:
        """Warns of more workers than the machine has cores."""
        import os

        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if self.num_workers and cores is not None and self.num_workers > cores:
            import warnings

            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested "
                f"max number of worker in current system is {cores}, which is smaller than what this "
                "DataLoader is going to create. Please be aware that excessive worker creation might get "
                "DataLoader running slow or even freeze, lower the worker number to avoid potential "
                "slowness/freeze if necessary.",
                stacklevel=3,
            )


def _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers):
    if num_workers < 0:
        raise advised(
            ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
            )
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_worker_method(method, context):
    if method not in ("multiprocessing", "thread"):
        raise ValueError(f"worker_method option should be 'multiprocessing' or 'thread', but got {method!r}")
    if method == "thread" and context is not None:
        raise ValueError("multiprocessing_context can't be used with worker_method='thread'")


def _wrap_pipe(pipe, shuffle):
    """A data pipe as it travels to workers, and the shuffling that is left to do for the loader."""
    from rushlight.utils.data.datapipes import datapipe
    from rushlight.utils.data.graph_settings import apply_shuffle_settings

    if isinstance(pipe, datapipe.MapDataPipe):
        return datapipe._MapDataPipeSerializationWrapper(pipe), shuffle
    return datapipe._IterDataPipeSerializationWrapper(apply_shuffle_settings(pipe, shuffle)), None


def _check_stream_options(shuffle, sampler, batch_sampler):
    given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items():
        if value is not None:
            text = f"expected unspecified {name} option, but got {name}={value}"
            raise advised(ValueError(f"DataLoader with IterableDataset: {text}"))


def _process_context(context):
    import multiprocessing

    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {methods!r}, "
                f"but got multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the "
            f"start method, but got multiprocessing_context={context!r}"
        )
    return context


def __getattr__(name):
    if name in ("_BaseDataLoaderIter", "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"):
        from rushlight.utils.data import _iterators

        return getattr(_iterators, name)
    if name == "_collate_fn_t":  # packages annotate with it
        from collections.abc import Callable
        from typing import Any

        return Callable[[list], Any]
    if name == "_worker_init_fn_t":
        from collections.abc import Callable

        return Callable[[int], None]
    if name == "_sharding_worker_init_fn":
        from rushlight.utils.data import graph_settings

        return graph_settings._sharding_worker_init_fn
    return type_variable(__name__, name)


if not TYPE_CHECKING:
    del T_co  # `__getattr__` makes it
