"""Steps that make batches and groups, and take them apart."""

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import DataChunk, IterDataPipe
from rushlight.utils.data.datapipes.utils.common import check_unpickable_fn

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Batches of samples that follow each other (functional name: ``batch``).

    Args:
        datapipe: the samples.
        batch_size: how many make a batch.
        drop_last: whether to leave out a last batch that is smaller.
        wrapper_class: what to make of the list of a batch.

    Example:
        >>> list(IterableWrapper(range(5)).batch(2))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self):
        batch = []
        for value in self.datapipe:
            batch.append(value)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self):
        (n,) = self._source_length(self.datapipe)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The samples of batches, of batches of batches (level 2), or of all that are nested (level -1)
    (functional name: ``unbatch``).

    Args:
        datapipe: the batches.
        unbatch_level: how many levels to take apart.

    Example:
        >>> list(IterableWrapper([[0, 1], [2]]).unbatch())
        [0, 1, 2]
    """

    def __init__(self, datapipe, unbatch_level=1):
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self):
        if self.unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element, unbatch_level):
        if unbatch_level == 0:
            yield element
        elif isinstance(element, list):
            for item in element:
                yield from self._dive(item, unbatch_level if unbatch_level == -1 else unbatch_level - 1)
        elif unbatch_level == -1:
            yield element
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Groups of samples with equal keys, given out when they have `group_size` samples, when the buffer is
    full (the largest one), or at the end."""

    def __init__(
        self,
        datapipe,
        group_key_fn,
        *,
        keep_key=False,
        buffer_size=10000,
        group_size=None,
        guaranteed_group_size=None,
        drop_remaining=False,
    ):
        if group_size is not None and buffer_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is not None and (
            group_size is None or not 0 < guaranteed_group_size <= group_size
        ):
            raise AssertionError(
                "guaranteed_group_size must be > 0 and <= group_size and group_size must be set"
            )
        check_unpickable_fn(group_key_fn)
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size
        self.drop_remaining = drop_remaining
        self.wrapper_class = DataChunk
        self._groups: dict = {}

    def reset(self):
        self._groups = {}

    def _take_largest(self, groups):
        """Makes room: the largest group, or nothing if it is small and such groups are dropped."""
        key = max(groups, key=lambda k: len(groups[k]))
        group = groups.pop(key)
        if self.guaranteed_group_size is not None and len(group) < self.guaranteed_group_size:
            if not self.drop_remaining:
                raise RuntimeError("Failed to group items", str(group))
            return key, None, len(group)
        return key, group, len(group)

    def _wrap(self, key, group):
        chunk = self.wrapper_class(group)
        return (key, chunk) if self.keep_key else chunk

    def __iter__(self):
        groups = self._groups  # kept, so that a pickle in the middle of a pass has them
        held = sum(map(len, groups.values()))
        for value in self.datapipe:
            key = self.group_key_fn(value)
            group = groups.setdefault(key, [])
            group.append(value)
            held += 1
            if len(group) == self.group_size:
                held -= len(groups.pop(key))
                yield self._wrap(key, group)
            if held == self.max_buffer_size:
                key, group, size = self._take_largest(groups)
                held -= size
                if group is not None:
                    yield self._wrap(key, group)
        while groups:
            key = next(iter(groups))
            yield self._wrap(key, groups.pop(key))
