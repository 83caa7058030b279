"""Shares of what is left of an epoch."""

import math

import rushlight
from rushlight.utils.data.distributed import DistributedSampler

__all__ = ["ElasticDistributedSampler"]


class ElasticDistributedSampler(DistributedSampler):
    """The share of one process in a dataset from `start_index` on, in another order each epoch: a job that
    was stopped goes on with as many processes as there are now.

    Args:
        dataset (Dataset): whose length counts.
        num_replicas (int, optional): processes; None: those of the default group.
        rank (int, optional): which of them this is; None: that of the default group.
        start_index (int): how many samples have been seen.

    Raises: ValueError where `start_index` is not below the length.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, start_index=0):
        super().__init__(dataset=dataset, num_replicas=num_replicas, rank=rank)
        if not hasattr(dataset, "__len__"):
            raise TypeError("Dataset must be an instance of collections.abc.Sized")
        if start_index >= len(dataset):
            raise ValueError(f"Start index {start_index} should be less than dataset size {len(dataset)}")
        self.start_index = start_index
        self.num_samples = math.ceil((len(dataset) - start_index) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self):
        generator = rushlight.Generator()
        generator.manual_seed(self.epoch)
        left = len(self.dataset) - self.start_index
        indices = (rushlight.randperm(left, generator=generator) + self.start_index).tolist()
        indices += (indices * self.num_replicas)[: self.total_size - left]
        return iter(indices[self.rank : self.total_size : self.num_replicas])
