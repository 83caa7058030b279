"""Fetchers: from the indices of a batch (or the next turns of a stream) to the collated batch."""

import itertools

import rushlight
from rushlight.utils.data._utils.collate import batch_in_shared_memory, default_collate
from rushlight.utils.data.dataset import Subset, TensorDataset, _get_items


class _BaseDatasetFetcher:
    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, index):
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        if self.ended:
            raise StopIteration
        batch = [sample for _, sample in zip(index, self.dataset_iter)]
        self.ended = len(batch) < len(index)
        if not batch or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(batch)

    def skip(self, samples):
        """Leaves out that many samples."""
        for _ in itertools.islice(self.dataset_iter, samples):
            pass


class SeededIndex(tuple):
    """An index, or a batch of them, and what the generators are seeded with while it is fetched."""

    __slots__ = ()

    def __new__(cls, index, seed):
        return super().__new__(cls, (index, seed))

    def __getnewargs__(self):
        return tuple(self)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    def fetch(self, index):
        if type(index) is SeededIndex:
            from rushlight.utils.data._utils import seeding

            index, seed = index
            with seeding.seeded(seed):
                return self.fetch(index)
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        if self.collate_fn is default_collate:
            rows = _tensor_rows(self.dataset, index)
            if rows is not None:
                return rows
        return self.collate_fn(_get_items(self.dataset, index))


def _tensor_rows(dataset, index):
    """The batch of a TensorDataset (or of a part of one) in one gather per tensor: what stacking single
    rows gives."""
    while type(dataset) is Subset:
        index = [dataset.indices[i] for i in index]
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or not index or not all(type(i) is int for i in index):
        return None
    if any(type(t) is not rushlight.Tensor or t.layout != rushlight.strided for t in dataset.tensors):
        return None
    rows = rushlight.tensor(index)
    return [_gather(t, rows) for t in dataset.tensors]


def _gather(tensor, rows):
    out = batch_in_shared_memory(len(rows), tensor[:1]) if len(tensor) else None
    return tensor[rows] if out is None else rushlight.index_select(tensor, 0, rows, out=out.squeeze(1))
