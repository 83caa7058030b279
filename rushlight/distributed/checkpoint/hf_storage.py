"""Distributed checkpoints as safetensors files, which libraries of Hugging Face read and write."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, replace
from typing import Any

from ... import Size
from . import _hf_files
from .filesystem import CheckpointException, FileSystemReader, FileSystemWriter, _done, _give
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
    _StorageInfo,
)
from .storage import WriteResult

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors into safetensors files of a folder, and `model.safetensors.index.json`.

    Args:
        path: the folder; made when it does not exist.
        fqn_to_index_mapping: the number, from 1, of the file of each name; without it there is one file.
        save_distributed: whether every rank writes the parts that it holds into files of its own. Otherwise
            one process saves (`no_dist=True`).
        enable_consolidation: whether parts, written to `path/sharded`, are put together in `path`.

    `thread_count` and `thread_count_consolidation` are taken for PyTorch's sake: files are written one after
    the other.

    Raises CheckpointException for values that are no tensors, for dtypes that safetensors does not have, and
    for names without a file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        fqn_to_index_mapping: dict[str, int] | None = None,
        thread_count: int = 1,
        save_distributed: bool = False,
        enable_consolidation: bool = False,
        thread_count_consolidation: int = 1,
    ) -> None:
        super().__init__(path, thread_count=thread_count)
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed = save_distributed
        self.enable_consolidation = enable_consolidation
        self.thread_count_consolidation = thread_count_consolidation
        self._put_parts()

    def _put_parts(self):
        """Parts go to a folder of their own where they are put together."""
        self.consolidated_output_path = None
        if self.enable_consolidation:
            self.consolidated_output_path = self.path
            self.path = os.path.join(self.path, _hf_files.SHARDS)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None):
        super().reset(checkpoint_id)
        if checkpoint_id is not None:
            self._put_parts()

    def set_up_storage_writer(self, is_coordinator, *args: Any, **kwargs: Any):
        if is_coordinator:
            os.makedirs(self.path, exist_ok=True)

    def prepare_global_plan(self, plans):
        shards = range(1, len(plans) + 1) if self.save_distributed else [None] * len(plans)
        return [replace(plan, storage_data=shard) for plan, shard in zip(plans, shards)]

    def write_data(self, plan, planner: Any):
        groups: dict[int, list] = {}
        for item in plan.items:
            groups.setdefault(self._number(item.index.fqn), []).append(item)
        count = max(self.fqn_to_index_mapping.values()) if self.fqn_to_index_mapping else 1
        found = []
        for number, items in groups.items():
            name = _hf_files.file_name(number, count, plan.storage_data)
            parts = {item.index.fqn: self._part(item, planner) for item in items}
            if len(parts) != len(items):
                raise CheckpointException("save: one file cannot hold several parts of a tensor")
            sizes = _hf_files.write_parts(os.path.join(self.path, name), parts)
            found += [
                WriteResult(item.index, sizes[item.index.fqn], _StorageInfo(name, 0, sizes[item.index.fqn]))
                for item in items
            ]
        return _done(found)

    def _number(self, name):
        """Of the file that a name goes to."""
        if not self.fqn_to_index_mapping:
            return 1
        if name not in self.fqn_to_index_mapping:
            raise CheckpointException(f"save: fqn_to_index_mapping names no file for {name}")
        return self.fqn_to_index_mapping[name]

    def _part(self, item, planner):
        value = planner.resolve_data(item)
        if isinstance(value, io.BytesIO):
            raise CheckpointException(
                f"save: safetensors files hold tensors only, and {item.index.fqn} is none"
            )
        return value, item.tensor_data.chunk.offsets

    def finish(self, metadata, results):
        """The index; of parts there is none, unless they are put together."""
        if not self.save_distributed:
            written = [result for theirs in results for result in theirs]
            file_of = {result.index.fqn: result.storage_data.relative_path for result in written}
            _hf_files.write_index(self.path, file_of, sum(result.size_in_bytes for result in written))
        elif self.enable_consolidation:
            numbers = self.fqn_to_index_mapping or dict.fromkeys(metadata.state_dict_metadata, 1)
            _hf_files.write_index(
                self.consolidated_output_path,
                *_hf_files.put_together(self.path, self.consolidated_output_path, numbers),
            )


@dataclass
class _HFStorageInfo:
    """Where a tensor, or a part of one, lies."""

    relative_path: str
    shape: Size
    dtype: Any


class HuggingFaceStorageReader(FileSystemReader):
    """Reads the safetensors files of the folder `path`, whole tensors or parts of them.

    `thread_count` is taken for PyTorch's sake: files are mapped, and only what a rank needs is read.

    Raises CheckpointException for a damaged file, and for parts of a tensor that do not fit together.
    """

    def __init__(self, path: str | os.PathLike[str], thread_count: int = 1) -> None:
        super().__init__(path)
        self.thread_count = thread_count

    def read_metadata(self, *args: Any, **kwargs: Any):
        """What the headers of the files say."""
        tensors: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}
        places: dict[MetadataIndex, _HFStorageInfo] = {}
        for path in _hf_files.files_of(self.path):
            with _hf_files.open_file(path) as opened:
                for name, begin in _hf_files.begins(opened, path).items():
                    value, index = opened.get_tensor(name), MetadataIndex(name, begin)
                    if index in places:
                        raise CheckpointException(f"{path}: {places[index].relative_path} holds {name} too")
                    _add_chunk(tensors, name, begin, value)
                    places[index] = _HFStorageInfo(path, value.shape, value.dtype)
        return Metadata(tensors, storage_data=places, storage_meta=StorageMeta())

    def read_data(self, plan, planner: Any):
        files: dict[str, list] = {}
        for item in plan.items:
            files.setdefault(self._where(item.storage_index).relative_path, []).append(item)
        for path, items in files.items():
            with _hf_files.open_file(path) as opened:
                for item in items:
                    _give(planner, item, opened.get_tensor(item.storage_index.fqn))
        return _done(None)


def _add_chunk(tensors, name, begin, value):
    """A part of a tensor joins what is known of it."""
    chunk = ChunkStorageMetadata(Size(begin), value.shape)
    end = [at + length for at, length in zip(begin, value.shape)]
    known = tensors.get(name)
    if known is None:
        tensors[name] = TensorStorageMetadata(TensorProperties(dtype=value.dtype), Size(end), [chunk])
        return
    if known.properties.dtype != value.dtype or len(known.size) != len(end):
        raise CheckpointException(f"{name}: its parts are of different dtypes or numbers of dimensions")
    known.chunks.append(chunk)
    known.size = Size(max(two) for two in zip(known.size, end))
