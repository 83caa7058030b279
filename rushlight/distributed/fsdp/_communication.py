"""How sharded modules gather and reduce; programs may bring their own ways."""

from abc import ABC, abstractmethod

import rushlight as torch
from rushlight import distributed

__all__ = ["AllGather", "Comm", "DefaultAllGather", "DefaultReduceScatter", "ReduceScatter"]


class Comm(ABC):
    """Memory for a collective, and the collective."""

    @abstractmethod
    def allocate(self, size, *, dtype, device):
        """A tensor for inputs or outputs: a fresh one, or one that is kept."""


class AllGather(Comm):
    @abstractmethod
    def __call__(self, output_tensor, input_tensor, group, async_op=False):
        """Gather; the Work if `async_op`, or None if all is done."""


class ReduceScatter(Comm):
    @abstractmethod
    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        """Reduce, and keep this process's part; the Work if `async_op`, or None if all is done."""


class _Fresh(Comm):
    def allocate(self, size, *, dtype, device):
        return torch.empty(size, dtype=dtype, device=device)


class DefaultAllGather(_Fresh, AllGather):
    def __call__(self, output_tensor, input_tensor, group, async_op=False):
        return distributed.all_gather_into_tensor(output_tensor, input_tensor, group, async_op=async_op)


class DefaultReduceScatter(_Fresh, ReduceScatter):
    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        return distributed.reduce_scatter_tensor(output_tensor, input_tensor, op, group, async_op=async_op)
