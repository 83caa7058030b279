"""The sizes and numbers of fake tensors, some of which may depend on data."""

import math
from typing import Any

import rushlight as torch

from .size_choices import comparable, is_tracking

__capture__ = "skip"  # Note [Capture marks]


class FakeNumbers:
    """What a tensor without data says of its sizes and elements; comes before the tensor's class."""

    fake_mode: Any
    size_numbers: dict | None = None  # of what a graph describes: dimensions whose sizes are SizeInts
    data_sizes: dict | None = None  # of a result: the dimensions whose sizes depend on data, and their names

    @property
    def shape(self):
        sizes = super().shape  # type: ignore[misc]
        if self.size_numbers is not None:
            return torch.Size([self.size_numbers.get(dim, size) for dim, size in enumerate(sizes)])
        numbers = self.fake_mode.data_numbers
        if self.data_sizes is None or numbers is None:
            return comparable(numbers, sizes)
        known = {dim: numbers.number(name) for dim, name in self.data_sizes.items()}
        return comparable(numbers, torch.Size([known.get(dim, size) for dim, size in enumerate(sizes)]))

    def size(self, dim=None):
        known = self.data_sizes is None and self.size_numbers is None
        if known and not is_tracking(self.fake_mode.data_numbers):
            size = super().size  # type: ignore[misc]
            return size() if dim is None else size(dim)
        return self.shape if dim is None else self.shape[dim]

    def numel(self):
        if self.data_sizes is None and is_tracking(self.fake_mode.data_numbers):
            return math.prod(self.shape)
        return super().numel()  # type: ignore[misc]

    def item(self):
        numbers = self.fake_mode.data_numbers
        plain = super().item  # type: ignore[misc]
        return plain() if numbers is None else numbers.item(self, plain)

    def __getitem__(self, index):
        self._check_index(index)
        return super().__getitem__(index)  # type: ignore[misc]

    def __setitem__(self, index, value):
        self._check_index(index)
        super().__setitem__(index, value)  # type: ignore[misc]

    def _check_index(self, index):
        numbers = self.fake_mode.data_numbers
        if numbers is not None and numbers.integers:
            numbers.check_index(index)

    def split_with_sizes(self, split_sizes, dim=0):
        self.check_parts(split_sizes, dim)
        return super().split_with_sizes(split_sizes, dim)  # type: ignore[misc]

    def check_parts(self, sizes, dim):
        """Numbers of the data that a tensor is split by are sizes, and make up the whole."""
        several = isinstance(sizes, (list, tuple))
        read: list[Any] = [n for n in sizes if isinstance(n, torch.SymInt)] if several else []
        for number in read:
            torch._check(number >= 0)
        if read:
            torch._check(sum(sizes) == self.size(dim))

    def _read(self, as_plain):
        """A Python number for a program that does more than compute with it."""
        if self.fake_mode.data_numbers is None:
            return getattr(super(), as_plain)()
        if as_plain == "__bool__":
            return bool((self != 0).item())  # type: ignore[attr-defined]
        value = self.item()
        if isinstance(value, torch.SymInt):  # no symbol may get lost
            value.numbers.settle(value)
        return getattr(value, as_plain)()

    def __bool__(self):
        return self._read("__bool__")

    def __int__(self):
        return self._read("__int__")

    def __index__(self):
        return self._read("__index__")

    def __float__(self):
        return self._read("__float__")

    def tolist(self):
        if not self.shape:
            return self.item()
        return [row.tolist() for row in self]  # type: ignore[attr-defined]
