"""A sampler that gives every process its share of a dataset."""

from __future__ import annotations

import math

import rushlight
from rushlight.utils.data.sampler import Sampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["DistributedSampler"]


def _from_process_group(value, name):
    if value is not None:
        return value
    distributed = getattr(rushlight, "distributed", None)
    if distributed is None or not distributed.is_available():
        raise RuntimeError("Requires distributed package to be available")
    return getattr(distributed, name)()


class DistributedSampler(Sampler):
    """The share of one process in a dataset, another order each epoch; call `set_epoch` before each.

    Args:
        dataset (Dataset): whose length counts.
        num_replicas (int, optional): processes; None: those of the default group.
        rank (int, optional): which of them this is; None: that of the default group.
        shuffle (bool): whether indices are permuted, by `seed` plus epoch on all.
        seed (int): the same on all.
        drop_last (bool): whether shares are made equal by leaving samples out, not by repeating some.

    Raises: ValueError where `rank` is not below `num_replicas`; RuntimeError without a group.

    Example:
        >>> sampler = torch.utils.data.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False)
        >>> list(sampler)
        [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        num_replicas = _from_process_group(num_replicas, "get_world_size")
        rank = _from_process_group(rank, "get_rank")
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.seed = 0, seed
        self.shuffle, self.drop_last = shuffle, drop_last
        length = len(dataset)
        share = length // num_replicas if drop_last else math.ceil(length / num_replicas)
        self.num_samples = share
        self.total_size = share * num_replicas

    def __iter__(self) -> Iterator[int]:
        length = len(self.dataset)
        if self.shuffle:
            generator = rushlight.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = rushlight.randperm(length, generator=generator).tolist()
        else:
            indices = list(range(length))
        missing = self.total_size - length
        if missing > 0:
            indices += (indices * math.ceil(missing / length))[:missing]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration's permutation another one."""
        self.epoch = epoch
