"""The records of a package that was unpacked into a folder."""

import os

from rushlight import UntypedStorage

__all__ = ["DirectoryReader"]


class DirectoryReader:
    """A folder as what `PyTorchFileReader` is for a file."""

    def __init__(self, directory):
        self.directory = directory

    def _path(self, name):
        return os.path.join(self.directory, name)

    def get_record(self, name):
        with open(self._path(name), "rb") as file:
            return file.read()

    def has_record(self, path):
        return os.path.isfile(self._path(path))

    def read_storage(self, name, nbytes):
        content = bytearray(self.get_record(name))
        if len(content) != nbytes:
            raise RuntimeError(f"package: {self._path(name)} has {len(content)} bytes, expected {nbytes}")
        return UntypedStorage._from_buffer(content, 0, nbytes) if nbytes else UntypedStorage(0)

    def get_all_records(self):
        found = []
        for folder, _, files in os.walk(self.directory):
            below = os.path.relpath(folder, self.directory)
            found += [f if below == "." else f"{below}/{f}".replace(os.sep, "/") for f in files]
        return found
