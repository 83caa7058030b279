"""Where distributed checkpoints lie: a folder with a file for each writing rank, and an index."""

import json
import os

from .. import _errors

INDEX = ".metadata.json"


class CheckpointException(_errors.DistError):
    """A checkpoint cannot be written or read."""


class FileSystemWriter:
    """Writes into a folder, which all ranks must see.

    Args:
        path: the folder; made when it does not exist.
        overwrite: whether a checkpoint that lies there may be replaced.
    """

    def __init__(self, path, single_file_per_rank=True, sync_files=True, thread_count=1, overwrite=True, **_):
        self.path, self.sync_files, self.overwrite = os.fspath(path), sync_files, overwrite

    def prepare(self):
        os.makedirs(self.path, exist_ok=True)
        index = os.path.join(self.path, INDEX)
        if os.path.exists(index):
            if not self.overwrite:
                raise CheckpointException(f"{self.path} holds a checkpoint already, and overwrite is False")
            os.remove(index)  # what is half written has no index

    def write(self, file, values):
        from ...serialization import save

        save(values, os.path.join(self.path, file))

    def finish(self, index):
        target = os.path.join(self.path, INDEX)
        with open(target + ".new", "w") as stream:
            json.dump(index, stream)
            stream.flush()
            if self.sync_files:
                os.fsync(stream.fileno())
        os.replace(target + ".new", target)


class FileSystemReader:
    """Reads what `FileSystemWriter` wrote into the folder `path`."""

    def __init__(self, path, **_):
        self.path = os.fspath(path)
        self._open = {}

    def read_metadata(self):
        """The index: which keys there are, and in which files.

        Raises CheckpointException when there is no complete checkpoint."""
        target = os.path.join(self.path, INDEX)
        try:
            with open(target) as stream:
                index = json.load(stream)
        except FileNotFoundError:
            raise CheckpointException(
                f"{self.path} holds no complete checkpoint: its index {INDEX} is missing"
            ) from None
        except ValueError as error:
            raise CheckpointException(f"{target} is damaged: {error}") from None
        if index.get("version") != 1:
            raise CheckpointException(f"{target} is of version {index.get('version')}; this build reads 1")
        return index

    def read(self, file):
        from ...serialization import load

        if file not in self._open:
            self._open[file] = load(os.path.join(self.path, file), mmap=True)
        return self._open[file]
