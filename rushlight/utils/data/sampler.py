"""Samplers: the order in which a loader visits a dataset."""

from __future__ import annotations

import itertools

import rushlight
from rushlight._errors.advice import advised
from rushlight.utils.data._generic import type_variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, Generic, TypeVar

    from rushlight import Generator, Tensor

    T_co = TypeVar("T_co", covariant=True)
else:
    from rushlight.utils.data._generic import Generic, T_co

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


def _is_positive_int(value):
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _fresh_generator():
    """A generator seeded by one draw from the default one, which is all that an epoch takes from it."""
    generator = rushlight.Generator()
    generator.manual_seed(int(rushlight.empty((), dtype=rushlight.int64).random_().item()))
    return generator


class Sampler(Generic[T_co]):
    """Base class of samplers: `__iter__` yields indices (or lists of them), `__len__` says how many.

    Example:
        >>> class Backwards(torch.utils.data.Sampler):
        ...     def __init__(self, data):
        ...         self.data = data
        ...     def __iter__(self):
        ...         return reversed(range(len(self.data)))
        ...     def __len__(self):
        ...         return len(self.data)
        >>> list(torch.utils.data.DataLoader([1, 2], sampler=Backwards([1, 2]), batch_size=None))
        [2, 1]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ... to the end of a dataset.

    Args:
        data_source (Dataset): whose length counts.

    Example:
        >>> list(torch.utils.data.SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Random indices: a permutation, or independent draws.

    Args:
        data_source (Dataset): whose length counts.
        replacement (bool): whether an index may come again.
        num_samples (int, optional): how many; None: the length.
        generator (Generator, optional): whose numbers are drawn; None: a new one for each epoch.

    Raises: ValueError where `num_samples` is not above 0; TypeError where `replacement` is no bool.

    Example:
        >>> sorted(torch.utils.data.RandomSampler("abc"))
        [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not _is_positive_int(self.num_samples):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        # Asked anew each time: the size of a dataset may change between epochs.
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, wanted = len(self.data_source), self.num_samples
        generator = _fresh_generator() if self.generator is None else self.generator
        if self.replacement:
            for start in range(0, wanted, 32):
                size = (min(32, wanted - start),)
                yield from rushlight.randint(
                    high=n, size=size, dtype=rushlight.int64, generator=generator
                ).tolist()
            return
        for _ in range(wanted // n):
            yield from rushlight.randperm(n, generator=generator).tolist()
        yield from rushlight.randperm(n, generator=generator).tolist()[: wanted % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices, in random order.

    Args:
        indices (sequence of int): which.
        generator (Generator, optional): whose numbers are drawn.

    Example:
        >>> sorted(torch.utils.data.SubsetRandomSampler([5, 7]))
        [5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in rushlight.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities in proportion to weights.

    Args:
        weights (sequence of float): need not sum to 1.
        num_samples (int): how many.
        replacement (bool): whether an index may come again.
        generator (Generator, optional): whose numbers are drawn.

    Raises: ValueError where `num_samples` is not above 0 or weights have two dimensions.

    Example:
        >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0], num_samples=3))
        [1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not _is_positive_int(num_samples):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = rushlight.as_tensor(weights, dtype=rushlight.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        draws = rushlight.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from draws.tolist()  # drawn when the first one is asked for, after the loader's own seed

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Groups the indices of another sampler into lists.

    Args:
        sampler (iterable of int): the indices.
        batch_size (int): how many a list has.
        drop_last (bool): whether a shorter last list is left out.

    Raises: ValueError where `batch_size` is not above 0 or `drop_last` is no bool.

    Example:
        >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not _is_positive_int(batch_size):
            raise advised(
                ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler: Any = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def __getattr__(name):
    return type_variable(__name__, name)


if not TYPE_CHECKING:
    del T_co  # `__getattr__` makes it
