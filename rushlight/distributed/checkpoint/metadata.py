"""What a checkpoint's index says: which tensors there are, in which chunks, and in which files.

Fields and pickled form are PyTorch's, so that its checkpoints and those of here are read by both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import rushlight as torch

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]


class _MEM_FORMAT_ENCODING(Enum):
    """Memory formats, as they are written."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = {
    torch.contiguous_format: _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT,
    torch.channels_last: _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST,
    torch.preserve_format: _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT,
}


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor: where it begins, how large it is."""

    offsets: torch.Size
    sizes: torch.Size


@dataclass
class TensorProperties:
    """What a tensor is but for its shape and values."""

    dtype: torch.dtype = torch.float32
    layout: torch.layout = torch.strided
    requires_grad: bool = False
    memory_format: torch.memory_format = torch.contiguous_format
    pin_memory: bool = False

    def __getstate__(self):
        encoded = _FORMATS[self.memory_format]
        return (self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory)

    def __setstate__(self, state):
        self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory = state
        self.memory_format = next(fmt for fmt, code in _FORMATS.items() if code is encoded)

    @staticmethod
    def create_from_tensor(tensor):
        return TensorProperties(dtype=tensor.dtype, layout=tensor.layout, requires_grad=tensor.requires_grad)


@dataclass
class TensorStorageMetadata:
    """A tensor that lies in one or several chunks."""

    properties: TensorProperties
    size: torch.Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Another value."""


@dataclass
class StorageMeta:
    """Where a checkpoint was written."""

    checkpoint_id: Any = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """The index of a checkpoint."""

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None  # {name: path} of nested states
    storage_data: Any = None  # {MetadataIndex: where}
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """A chunk of a tensor, by where it begins; or another value. `index` is a hint."""

    fqn: str
    offset: torch.Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None):
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else torch.Size(offset))


@dataclass
class _StorageInfo:
    """Where a value lies: a file, and which of its bytes."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None
