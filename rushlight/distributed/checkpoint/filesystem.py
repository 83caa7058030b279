"""Where distributed checkpoints lie: a folder with files of each writing rank, and an index."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import re
import uuid
from dataclasses import dataclass, replace

from ...futures import Future
from .. import _errors
from . import _index_file
from .metadata import StorageMeta, _StorageInfo
from .planner import LoadItemType
from .storage import StorageReader, StorageWriter, WriteResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

INDEX = ".metadata"
_DATA_FILE = re.compile(r"__\d+_(?:(\d+)_)?\d+\.distcp")


class CheckpointException(_errors.DistError):
    """A checkpoint cannot be written or read. Raised for an error of another kind, it is of that kind too.

    Args:
        message: what is wrong.
        failures: of each rank that failed its error and where that was raised.
    """

    def __init__(self, message="", failures=None):
        super().__init__(message)
        self._failures = dict(failures or {})

    @property
    def failures(self):
        """Of each rank that failed its error and where that was raised (of other ranks nothing is known)."""
        return self._failures

    def __reduce__(self):
        return CheckpointException, (str(self),)


@contextlib.contextmanager
def _removed_on_error(path):
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(path)
        raise


def _done(value):
    future: Future = Future()
    future.set_result(value)
    return future


@dataclass
class _StoragePrefix:
    """How the names of a rank's files begin."""

    prefix: str


class FileSystemWriter(StorageWriter):
    """Writes into a folder, which all ranks must see. A checkpoint that lies there counts until the new one
    is complete: its files get names that are not taken, the index is replaced, and then former files go.

    Args:
        path: the folder; made when it does not exist.
        single_file_per_rank: whether a rank writes one file, instead of one for each value.
        sync_files: whether files are on the disk when they count.
        overwrite: whether a checkpoint that lies there may be replaced.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        overwrite: bool = True,
        **_,
    ) -> None:
        self.path, self.sync_files, self.overwrite = os.fspath(path), sync_files, overwrite
        self.single_file_per_rank = single_file_per_rank
        self.save_id, self._written = str(uuid.uuid4()), []

    @property
    def checkpoint_id(self):
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | PathLike[str] | None):
        return isinstance(checkpoint_id, (str, os.PathLike)) and "://" not in str(checkpoint_id)

    def reset(self, checkpoint_id: str | PathLike[str] | None = None):
        if checkpoint_id is not None:
            self.path = os.fspath(checkpoint_id)
        self.save_id, self._written = str(uuid.uuid4()), []

    def storage_meta(self):
        return StorageMeta(checkpoint_id=str(self.path), save_id=self.save_id)

    def set_up_storage_writer(self, is_coordinator, *args: Any, **kwargs: Any):
        """The first rank makes the folder."""
        if not is_coordinator:
            return
        os.makedirs(self.path, exist_ok=True)
        if os.path.exists(os.path.join(self.path, INDEX)) and not self.overwrite:
            raise CheckpointException(f"{self.path} holds a checkpoint already, and overwrite is False")

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        taken = [int(found[1] or 0) for found in self._data_files().values()]
        again = f"{max(taken) + 1}_" if taken else ""
        return [replace(plan, storage_data=_StoragePrefix(f"__{i}_{again}")) for i, plan in enumerate(plans)]

    def _data_files(self):
        """The files of values in the folder, as matches whose first group counts the saves before."""
        names = os.listdir(self.path) if os.path.isdir(self.path) else []
        return {name: found for name in names if (found := _DATA_FILE.fullmatch(name))}

    def write_data(self, plan, planner: Any):
        groups = [plan.items] if self.single_file_per_rank else [[item] for item in plan.items]
        found = []
        for number, group in enumerate(groups):
            if group:
                found += self._write_file(f"{plan.storage_data.prefix}{number}.distcp", group, planner)
        return _done(found)

    def _write_file(self, name, items, planner):
        from ...serialization import save

        path, found = os.path.join(self.path, name), []
        with _removed_on_error(path), open(path, "wb") as stream:
            for item in items:
                start, value = stream.tell(), planner.resolve_data(item)
                if isinstance(value, io.BytesIO):
                    stream.write(value.getbuffer())
                else:
                    save(value, _Appended(stream, start))
                    stream.seek(0, os.SEEK_END)
                length = stream.tell() - start
                found.append(WriteResult(item.index, length, _StorageInfo(name, start, length)))
            if self.sync_files:
                stream.flush()
                os.fsync(stream.fileno())
        self._written.append(path)
        return found

    def abandon(self):
        """Remove what this rank wrote for a checkpoint that will not be: on a full disk room counts."""
        for path in self._written:
            with contextlib.suppress(OSError):
                os.remove(path)

    def finish(self, metadata, results):
        """The checkpoint counts from here on."""
        metadata.storage_data = {r.index: r.storage_data for theirs in results for r in theirs}
        metadata.storage_meta = self.storage_meta()
        target = os.path.join(self.path, INDEX)
        with _removed_on_error(target + ".tmp"):
            with open(target + ".tmp", "wb") as stream:
                _index_file.dump(metadata, stream)
                stream.flush()
                if self.sync_files:
                    os.fsync(stream.fileno())
            os.replace(target + ".tmp", target)
        used = {info.relative_path for info in metadata.storage_data.values()}
        with contextlib.suppress(OSError):  # the checkpoint is complete all the same
            for name in self._data_files().keys() - used:
                os.remove(os.path.join(self.path, name))


class _Appended:
    """A file that begins where another one is."""

    def __init__(self, stream, start):
        self._stream, self._start = stream, start

    def write(self, data):
        return self._stream.write(data)

    def flush(self):
        self._stream.flush()

    def tell(self):
        return self._stream.tell() - self._start

    def seek(self, offset, whence=os.SEEK_SET):
        at = self._stream.seek(offset + self._start if whence == os.SEEK_SET else offset, whence)
        return at - self._start


class FileSystemReader(StorageReader):
    """Reads what `FileSystemWriter`, or PyTorch's, wrote into the folder `path`."""

    def __init__(self, path: str | PathLike[str], **_) -> None:
        self.path = os.fspath(path)

    @property
    def checkpoint_id(self):
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | PathLike[str] | None):
        return FileSystemWriter.validate_checkpoint_id(checkpoint_id)

    def reset(self, checkpoint_id: str | PathLike[str] | None = None):
        if checkpoint_id is not None:
            self.path = os.fspath(checkpoint_id)

    def read_metadata(self, *args: Any, **kwargs: Any):
        """The index: which keys there are, and in which files.

        Raises CheckpointException when there is no complete checkpoint."""
        target = os.path.join(self.path, INDEX)
        try:
            with open(target, "rb") as stream:
                return _index_file.load(stream)
        except FileNotFoundError:
            raise CheckpointException(
                f"{self.path} holds no complete checkpoint: its index {INDEX} is missing"
            ) from None
        except (pickle.UnpicklingError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointException(f"{target} is damaged: {error}") from None

    def set_up_storage_reader(self, metadata, is_coordinator, *args: Any, **kwargs: Any):
        self._index = metadata

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        return plans

    def read_data(self, plan, planner: Any):
        for index, items in _by_chunk(plan.items).items():
            stream = io.BytesIO(self._bytes(self._where(index)))
            if items[0].type == LoadItemType.BYTE_IO:
                planner.load_bytes(items[0], stream)
                continue
            value = self._tensor(index, stream)
            for item in items:
                _give(planner, item, value)
        return _done(None)

    def _where(self, index):
        if index not in (self._index.storage_data or ()):
            raise CheckpointException(f"the index of the checkpoint does not say where {index.fqn} lies")
        return self._index.storage_data[index]

    def _tensor(self, index, stream):
        """A chunk, of the shape that the index gives."""
        from ... import Tensor
        from ...serialization import load

        value = load(stream, map_location="cpu", weights_only=True)
        chunks = self._index.state_dict_metadata[index.fqn].chunks
        sizes = next((chunk.sizes for chunk in chunks if chunk.offsets == index.offset), None)
        if not isinstance(value, Tensor) or value.shape != sizes:
            raise CheckpointException(f"{index.fqn}: a chunk is not of the shape {sizes} of the index")
        return value

    def _bytes(self, where):
        """What lies there."""
        if where.transform_descriptors:
            raise CheckpointException(
                f"{where.relative_path}: values changed on their way to the file "
                f"({where.transform_descriptors}) cannot be read back here"
            )
        name = os.path.normpath(where.relative_path)
        if os.path.isabs(name) or name.startswith(".."):
            raise CheckpointException(f"{self.path}: the index names a file elsewhere, {where.relative_path}")
        try:
            with open(os.path.join(self.path, name), "rb") as stream:
                if os.fstat(stream.fileno()).st_size < where.offset + where.length:
                    raise CheckpointException(f"{self.path}/{name} is shorter than its index says")
                stream.seek(where.offset)
                return stream.read(where.length)
        except (OSError, ValueError, OverflowError) as error:
            raise CheckpointException(f"{self.path}: {error}") from None


def _give(planner, item, chunk):
    """Copy what an item asks of a chunk to where the planner wants it."""
    from ... import no_grad

    target = planner.resolve_tensor(item)
    for dim, (begin, length) in enumerate(zip(item.storage_offsets, item.lengths)):
        chunk = chunk.narrow(dim, begin, length)
    with no_grad():
        target.detach().copy_(chunk)
    planner.commit_tensor(item, target)


def _by_chunk(items):
    """Items by the chunk that they read, so that each is read once."""
    found: dict = {}
    for item in items:
        found.setdefault(item.storage_index, []).append(item)
    return found
