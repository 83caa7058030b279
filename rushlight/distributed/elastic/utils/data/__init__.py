"""Data of jobs that go on where they were stopped."""

from rushlight.distributed.elastic.utils.data.cycling_iterator import CyclingIterator
from rushlight.distributed.elastic.utils.data.elastic_distributed_sampler import ElasticDistributedSampler

__all__ = ["CyclingIterator", "ElasticDistributedSampler"]
