"""Datasets by index and by iteration, and the ways to join, stack and split them."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from itertools import accumulate

import rushlight
from rushlight._errors.advice import advised, attach
from rushlight.utils.data._generic import type_variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, Generic, TypeVar

    from rushlight import Generator, Tensor

    _T = TypeVar("_T")
    T_co = TypeVar("T_co", covariant=True)
else:
    from rushlight.utils.data._generic import Generic, T_co

__all__ = [
    "Dataset",
    "IterableDataset",
    "TensorDataset",
    "StackDataset",
    "ConcatDataset",
    "ChainDataset",
    "Subset",
    "random_split",
]


class Dataset(Generic[T_co]):
    """A collection of samples by index: subclasses give ``__getitem__``, usually ``__len__`` too.

    ``__getitems__(indices)``, where a subclass has it, fetches a whole batch at once.

    Example:
        >>> class Squares(torch.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 4
        ...     def __getitem__(self, i):
        ...         return i * i
        >>> [batch.tolist() for batch in torch.utils.data.DataLoader(Squares(), batch_size=2)]
        [[0, 1], [4, 9]]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise advised(NotImplementedError("Subclasses of Dataset should implement __getitem__."))

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], metaclass=ABCMeta):
    """A stream of samples: subclasses give ``__iter__``.

    Example:
        >>> class Count(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(3))
        >>> [batch.tolist() for batch in torch.utils.data.DataLoader(Count(), batch_size=2)]
        [[0, 1], [2]]
    """

    @abstractmethod
    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


def _is_pipe(dataset, kind):
    """Whether the dataset is a data pipe; asks only where the module is in use."""
    import sys

    module = sys.modules.get("rushlight.utils.data.datapipes.datapipe")
    return module is not None and isinstance(dataset, getattr(module, kind))


class TensorDataset(Dataset[tuple[rushlight.Tensor, ...]]):
    """Tensors of equal first size; a sample is the tuple of their rows.

    Args:
        tensors (Tensor): at least one.

    Raises: AssertionError where first sizes differ.

    Example:
        >>> data = torch.utils.data.TensorDataset(torch.tensor([[1.0], [2.0]]), torch.tensor([0, 1]))
        >>> data[1], len(data)
        ((tensor([2.]), tensor(1)), 2)
    """

    def __init__(self, *tensors: Tensor) -> None:
        try:
            same = all(tensors[0].size(0) == t.size(0) for t in tensors)
        except AttributeError as error:  # lists, say
            raise advised(error)
        if not same:
            raise advised(AssertionError("Size mismatch between tensors"))
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset["Any"]):
    """Datasets of equal length side by side.

    Args:
        args: datasets; a sample is a tuple.
        kwargs: datasets by name; a sample is a dict.

    Raises: ValueError where lengths differ, both kinds are given or none.

    Example:
        >>> torch.utils.data.StackDataset(x=[1, 2], y=[3, 4])[1]
        {'x': 2, 'y': 4}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, "
                "but both types are given."
            )
        if not (args or kwargs):
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        parts = self._parts()
        self._length = len(parts[0])
        if any(len(d) != self._length for d in parts):
            raise advised(ValueError("Size mismatch between datasets"))

    def _parts(self):
        return list(self.datasets.values()) if isinstance(self.datasets, dict) else list(self.datasets)

    def _pack(self, values):
        return dict(zip(self.datasets, values)) if isinstance(self.datasets, dict) else tuple(values)

    def __getitem__(self, index: Any) -> Any:
        return self._pack(d[index] for d in self._parts())

    def __getitems__(self, indices):
        columns = [_get_items(d, indices) for d in self._parts()]
        for column in columns:
            if len(column) != len(indices):
                raise ValueError(
                    f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(column)}"
                )
        return [self._pack(row) for row in zip(*columns)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Datasets one after the other.

    Args:
        datasets (iterable): with `__len__` and `__getitem__`, at least one.

    Raises: AssertionError where there is none, or one is iterable; ValueError for an index out of range.

    Example:
        >>> data = torch.utils.data.ConcatDataset([[1, 2], [3]])
        >>> data[2], len(data)
        (3, 3)
    """

    @staticmethod
    def cumsum(sequence: Any) -> list[int]:
        return list(accumulate(len(d) for d in sequence))

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        from bisect import bisect_right

        which = bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]

    @property
    def cummulative_sizes(self) -> list[int]:
        import warnings

        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`", DeprecationWarning, stacklevel=2
        )
        return self.cumulative_sizes


class ChainDataset(IterableDataset["Any"]):
    """Iterable datasets one after the other.

    Args:
        datasets (iterable): of IterableDataset.

    Raises: AssertionError where one is not iterable.

    Example:
        >>> class Numbers(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter([1, 2])
        >>> list(torch.utils.data.ChainDataset([Numbers(), Numbers()]))
        [1, 2, 1, 2]
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        super().__init__()
        self.datasets = datasets

    def _checked(self):
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield d

    def __iter__(self) -> Iterator[Any]:
        for d in self._checked():
            yield from d

    def __len__(self) -> int:
        return sum(len(d) for d in self._checked())


class Subset(Dataset[T_co]):
    """The samples of a dataset at some indices.

    Args:
        dataset (Dataset): whose samples they are.
        indices (sequence of int): which, in their order.

    Example:
        >>> data = torch.utils.data.Subset([10, 20, 30], [2, 0])
        >>> data[0], len(data)
        (30, 2)
    """

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> T_co:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices):
        return _get_items(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def _get_items(dataset, indices):
    """Fetch several samples, in one call where the dataset knows how."""
    if callable(getattr(dataset, "__getitems__", None)):
        return dataset.__getitems__(indices)
    index = None
    try:
        samples = []
        for index in indices:
            samples.append(dataset[index])
        return samples
    except Exception as error:
        _name_sample(error, dataset, index)
        raise


def _name_sample(error, dataset, index):
    """Add to an error's notes which sample it came from."""
    note = f"while reading sample {index!r} of {type(dataset).__name__}"
    attach(error, note)


def _fractions_to_lengths(fractions, total):
    lengths = []
    for i, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        lengths.append(int(total * fraction))
    for i in range(total - sum(lengths)):
        lengths[i % len(lengths)] += 1
    return lengths


def random_split(
    dataset: Dataset[_T], lengths: Sequence[Any], generator: Generator | None = None
) -> list[Subset[_T]]:
    """Splits a dataset at random into parts.

    Args:
        dataset (Dataset): what is split.
        lengths (sequence): of the parts, or fractions that sum to 1.
        generator (Generator, optional): whose numbers are drawn.

    Returns: a list of Subset.

    Raises: ValueError where lengths do not sum to the dataset's.

    Example:
        >>> parts = torch.utils.data.random_split(range(10), [0.8, 0.2])
        >>> [len(p) for p in parts]
        [8, 2]
    """
    size, lengths = len(dataset), list(lengths)  # type: ignore[arg-type]
    if abs(sum(lengths) - 1) < 1e-9 and sum(lengths) <= 1 + 1e-9:
        lengths = _fractions_to_lengths(lengths, size)
        for i, length in enumerate(lengths):
            if length == 0:
                import warnings

                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2
                )
    if sum(lengths) != size:
        raise advised(ValueError("Sum of input lengths does not equal the length of the input dataset!"))
    if generator is None:
        generator = rushlight.default_generator
    order = rushlight.randperm(sum(lengths), generator=generator).tolist()
    return [Subset(dataset, order[end - n : end]) for end, n in zip(accumulate(lengths), lengths)]


def __getattr__(name):
    return type_variable(__name__, name)


if not TYPE_CHECKING:
    del T_co  # `__getattr__` makes it
