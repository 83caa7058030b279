"""Steps over samples by key."""

import copy
import warnings

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import DataChunk, MapDataPipe
from rushlight.utils.data.datapipes.iter.combinatorics import _Seeded
from rushlight.utils.data.datapipes.utils.common import check_unpickable_fn

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The values of a sequence or a mapping, copied unless `deepcopy` is off."""

    def __init__(self, sequence, deepcopy=True):
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place modification "
                    "would affect source data",
                    stacklevel=2,
                )

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self):
        return len(self.sequence)


def _identity(data):
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """The function's value for each sample (functional name: ``map``).

    Args:
        datapipe: the samples.
        fn: the function.

    Example:
        >>> list(SequenceWrapper(range(3)).map(str))
        ['0', '1', '2']
    """

    def __init__(self, datapipe, fn=_identity):
        check_unpickable_fn(fn)
        self.datapipe = datapipe
        self.fn = fn

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])

    def __len__(self):
        return self._source_length(self.datapipe)[0]


class _Joined(MapDataPipe):
    def __init__(self, *datapipes):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        if not all(hasattr(type(pipe), "__len__") for pipe in datapipes):
            raise TypeError("Expected all inputs be `Sized`")
        self.datapipes = datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(_Joined):
    """One after the other, numbered through (functional name: ``concat``).

    Args:
        datapipes: the samples.

    Example:
        >>> list(SequenceWrapper([0, 1]).concat(SequenceWrapper([2])))
        [0, 1, 2]
    """

    def __getitem__(self, index):
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):
                return pipe[index - offset]
            offset += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self):
        return sum(self._source_length(*self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(_Joined):
    """Tuples of the samples that have the same key (functional name: ``zip``).

    Args:
        datapipes: the samples.

    Example:
        >>> list(SequenceWrapper([0, 1]).zip(SequenceWrapper([2, 3])))
        [(0, 2), (1, 3)]
    """

    def __getitem__(self, index):
        try:
            return tuple(pipe[index] for pipe in self.datapipes)
        except IndexError as e:
            raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes.") from e

    def __len__(self):
        return min(self._source_length(*self.datapipes))


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Batches of samples that follow each other (functional name: ``batch``).

    Args:
        datapipe: the samples.
        batch_size: how many make a batch.
        drop_last: whether to leave out a last batch that is smaller.
        wrapper_class: what to make of the list of a batch.

    Example:
        >>> list(SequenceWrapper(range(5)).batch(2))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        start = index * self.batch_size
        end = min(start + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(start, end)])

    def __len__(self):
        (n,) = self._source_length(self.datapipe)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


class ShufflerIterDataPipe(_Seeded):
    """All samples of a map pipe in random order: a stream (functional name: ``shuffle``).

    Args:
        datapipe: the samples.
        indices: their keys, where these are not 0, 1, ...

    Example:
        >>> list(SequenceWrapper(range(3)).shuffle())
        [2, 0, 1]
    """

    def __init__(self, datapipe, *, indices=None):
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._shuffled_indices: list = []

    def reset(self):
        super().reset()
        if self._enabled:
            self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __iter__(self):
        if not self._enabled:
            for index in self.indices:
                yield self.datapipe[index]
            return
        while self._shuffled_indices:
            yield self.datapipe[self._shuffled_indices.pop()]

    def __len__(self):
        return self._source_length(self.datapipe)[0]


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)

Batcher = BatcherMapDataPipe
Concater = ConcaterMapDataPipe
Mapper = MapperMapDataPipe
SequenceWrapper = SequenceWrapperMapDataPipe
Shuffler = ShufflerIterDataPipe
Zipper = ZipperMapDataPipe
