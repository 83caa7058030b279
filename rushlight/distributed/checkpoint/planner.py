"""What is written to a checkpoint and read from it: plans, and the base classes of planners of one's own."""

import abc
import io
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ... import Size
from .metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties

__all__ = [
    "BytesIOWriteData",
    "LoadItemType",
    "LoadPlan",
    "LoadPlanner",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "TensorWriteData",
    "WriteItem",
    "WriteItemType",
]


class WriteItemType(Enum):
    """A whole tensor, a part of one, or other values."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """A tensor or other values."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes a value takes, as far as that is known."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """Which part of what tensor is written."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Size


@dataclass(frozen=True)
class WriteItem:
    """A value to write."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """Bytes of the whole tensor; None for other values."""
        if self.tensor_data is None:
            return None
        return self.tensor_data.size.numel() * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """A box of a saved chunk, and where it goes in a tensor of this process."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Size
    storage_index: MetadataIndex
    storage_offsets: Size
    lengths: Size


@dataclass(frozen=True)
class SavePlan:
    """What a rank writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What a rank reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Says what is written. In this order: set_up_planner, create_local_plan on every rank;
    create_global_plan on the first one; finish_plan, and resolve_data for each item, on every rank."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        """The state to write."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this rank would write."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans):
        """What every rank is to write, and the Metadata of the whole."""

    @abc.abstractmethod
    def finish_plan(self, new_plan) -> SavePlan:
        """This rank's part of the global plan, accepted or changed."""

    @abc.abstractmethod
    def resolve_data(self, write_item):
        """The item's tensor, or a BytesIO with other values. May be called by several threads."""


class LoadPlanner(abc.ABC):
    """Says what is read. In this order: set_up_planner, create_local_plan on every rank; create_global_plan
    on the first one; finish_plan, and load_bytes or resolve_tensor and commit_tensor for each item, on every
    rank."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        """The state to fill, and the checkpoint's index."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this rank needs."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan):
        """What every rank is to read."""

    @abc.abstractmethod
    def finish_plan(self, central_plan) -> LoadPlan:
        """This rank's part of the global plan, accepted or changed."""

    @abc.abstractmethod
    def load_bytes(self, read_item, value: io.BytesIO):
        """Take a value that is no tensor, as it was written."""

    def resolve_bytes(self, read_item):
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item):
        """The tensor to read into: of the item's `lengths`."""

    @abc.abstractmethod
    def commit_tensor(self, read_item, tensor):
        """The tensor that resolve_tensor gave is filled."""
