"""Epochs one after the other as one iterator."""

from collections.abc import Iterator

__all__ = ["CyclingIterator"]


class CyclingIterator(Iterator):
    """Goes through ``generator_fn(epoch)`` for each epoch from `start_epoch` to `n` - 1.

    Example:
        >>> from torch.distributed.elastic.utils.data import CyclingIterator
        >>> list(CyclingIterator(2, lambda epoch: iter([epoch, 10])))
        [0, 10, 1, 10]
    """

    def __init__(self, n, generator_fn, start_epoch=0):
        self._n, self._epoch, self._generator_fn = n, start_epoch, generator_fn
        self._iter = generator_fn(start_epoch)

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            try:
                return next(self._iter)
            except StopIteration:
                if self._epoch >= self._n - 1:
                    raise
            self._epoch += 1
            self._iter = self._generator_fn(self._epoch)
