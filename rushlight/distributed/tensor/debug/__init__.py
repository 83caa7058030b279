"""Seeing what spread tensors communicate."""

from collections import Counter

import rushlight as torch
from rushlight.distributed import _functional_collectives as collectives

__all__ = ["CommDebugMode"]


class CommDebugMode:
    """Counts the collectives of spread tensors that run inside, by their operators:
    `torch.ops.c10d_functional.all_reduce`, `all_gather_into_tensor`, `reduce_scatter_tensor`, ..."""

    def __init__(self):
        self.comm_counts: Counter = Counter()
        self._bytes = 0

    def _see(self, name, tensor):
        self.comm_counts[getattr(torch.ops.c10d_functional, name)] += 1
        self._bytes += tensor.numel() * tensor.element_size()

    def __enter__(self):
        self.comm_counts.clear()
        self._bytes = 0
        collectives._watchers.append(self._see)
        return self

    def __exit__(self, *_):
        collectives._watchers.remove(self._see)

    def get_comm_counts(self):
        """{operator: how often}."""
        return self.comm_counts

    def get_total_counts(self):
        """How many collectives there were."""
        return sum(self.comm_counts.values())

    def get_total_bytes(self):
        """How many bytes this process gave to them."""
        return self._bytes
