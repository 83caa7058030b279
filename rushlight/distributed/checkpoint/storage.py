"""What a place for checkpoints must be able to do: the base classes of storages of one's own."""

import abc
from dataclasses import dataclass
from typing import Any

from .metadata import MetadataIndex

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """What became of a value that was written; `storage_data` goes into the index, for the reader."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes a checkpoint. In this order: reset, set_up_storage_writer, prepare_local_plan on every rank;
    prepare_global_plan on the first one; write_data on every rank; finish on the first one."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None):
        """A new checkpoint begins, at another place if `checkpoint_id` is given."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        """Before anything is written."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """The rank's SavePlan, changed or with `storage_data`."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """The SavePlans of all ranks, changed or with `storage_data`."""

    @abc.abstractmethod
    def write_data(self, plan, planner):
        """Write the plan's items, whose data `planner.resolve_data(item)` gives; a Future of WriteResults."""

    @abc.abstractmethod
    def finish(self, metadata, results):
        """Write the index; `results` has a list of WriteResults of every rank."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether this storage can take such a place."""

    def storage_meta(self):
        """A StorageMeta for the planner, or None."""
        return None


class StorageReader(abc.ABC):
    """Reads a checkpoint. In this order: reset, read_metadata, set_up_storage_reader, prepare_local_plan on
    every rank; prepare_global_plan on the first one; read_data on every rank."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None):
        """Reading begins, from another place if `checkpoint_id` is given."""

    @abc.abstractmethod
    def read_metadata(self, *args, **kwargs):
        """The index, a Metadata."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        """Before anything is read."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """The rank's LoadPlan, changed or with `storage_data`."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """The LoadPlans of all ranks, changed or with `storage_data`."""

    @abc.abstractmethod
    def read_data(self, plan, planner):
        """Read the plan's items: tensors into `planner.resolve_tensor(item)`, which `planner.commit_tensor`
        is told, other values to `planner.load_bytes(item, stream)`. A Future."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Whether this storage knows such places."""
