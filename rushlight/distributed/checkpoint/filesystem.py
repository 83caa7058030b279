"""Where distributed checkpoints lie: a folder with files of each writing rank, and an index."""

import os
import pickle
import uuid

from .. import _errors
from . import _index_file
from .metadata import StorageMeta, _StorageInfo

INDEX = ".metadata"


class CheckpointException(_errors.DistError):
    """A checkpoint cannot be written or read."""


class FileSystemWriter:
    """Writes into a folder, which all ranks must see.

    Args:
        path: the folder; made when it does not exist.
        single_file_per_rank: whether a rank writes one file, instead of one for each value.
        sync_files: whether files are on the disk when they count.
        overwrite: whether a checkpoint that lies there may be replaced.
    """

    def __init__(self, path, single_file_per_rank=True, sync_files=True, thread_count=1, overwrite=True, **_):
        self.path, self.sync_files, self.overwrite = os.fspath(path), sync_files, overwrite
        self.single_file_per_rank = single_file_per_rank
        self.save_id = str(uuid.uuid4())

    @property
    def checkpoint_id(self):
        return self.path

    def prepare(self):
        """On one rank, before anything is written: what is half written has no index."""
        os.makedirs(self.path, exist_ok=True)
        index = os.path.join(self.path, INDEX)
        if os.path.exists(index):
            if not self.overwrite:
                raise CheckpointException(f"{self.path} holds a checkpoint already, and overwrite is False")
            os.remove(index)

    def write(self, rank, items):
        """Write [(MetadataIndex, value)]; returns {MetadataIndex: where it lies}."""
        groups = [items] if self.single_file_per_rank else [[item] for item in items]
        found = {}
        for number, group in enumerate(groups):
            if group:
                found |= self._write_file(f"__{rank}_{number}.distcp", group)
        return found

    def _write_file(self, name, items):
        from ...serialization import save

        found = {}
        with open(os.path.join(self.path, name), "wb") as stream:
            for index, value in items:
                start = stream.tell()
                save(value, _Appended(stream, start))
                stream.seek(0, os.SEEK_END)
                found[index] = _StorageInfo(name, start, stream.tell() - start)
            if self.sync_files:
                stream.flush()
                os.fsync(stream.fileno())
        return found

    def finish(self, index):
        """On one rank, when all have written: the checkpoint counts from here on."""
        index.storage_meta = StorageMeta(checkpoint_id=str(self.path), save_id=self.save_id)
        target = os.path.join(self.path, INDEX)
        with open(target + ".tmp", "wb") as stream:
            _index_file.dump(index, stream)
            stream.flush()
            if self.sync_files:
                os.fsync(stream.fileno())
        os.replace(target + ".tmp", target)


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


class FileSystemReader:
    """Reads what `FileSystemWriter`, or PyTorch's, wrote into the folder `path`."""

    def __init__(self, path, **_):
        self.path = os.fspath(path)

    @property
    def checkpoint_id(self):
        return self.path

    def read_metadata(self):
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

    def read(self, where, weights_only=True):
        """The value that lies there."""
        import io

        from ...serialization import load

        if where.transform_descriptors:
            raise CheckpointException(
                f"{where.relative_path}: values changed on their way to the file "
                f"({where.transform_descriptors}) "
                "cannot be read back here"
            )
        name = os.path.normpath(where.relative_path)
        if os.path.isabs(name) or name.startswith(".."):
            raise CheckpointException(f"{self.path}: the index names a file elsewhere, {where.relative_path}")
        try:
            with open(os.path.join(self.path, name), "rb") as stream:
                stream.seek(where.offset)
                data = stream.read(where.length)
        except (OSError, ValueError, OverflowError) as error:
            raise CheckpointException(f"{self.path}: {error}") from None
        if len(data) != where.length:
            raise CheckpointException(f"{self.path}/{name} is shorter than its index says")
        return load(io.BytesIO(data), map_location="cpu", weights_only=weights_only)
