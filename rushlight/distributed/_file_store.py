"""A store in a file that all processes see."""

import fcntl
import os
import struct
import weakref
from contextlib import contextmanager, suppress

from .store import OwnStore, poll, to_bytes

_LENGTHS = struct.Struct("<II")
_DELETED = 0xFFFFFFFF


class FileStore(OwnStore):
    """A store in the file `file_name`, on a file system with working locks that all processes share.

    The file is a log of (key, value) records, appended under a lock. Part of a record, which a killed process
    or a full disk left at the end, is cut off by the next who comes. The file is removed when the last
    process lets go of the store; a file that a killed job left behind must be removed by hand.
    """

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        self.path = os.fspath(file_name)
        self._values, self._position = {}, 0
        self.add("cleanup/", 1)
        self._finalizer = weakref.finalize(self, _let_go, self.path)

    @contextmanager
    def _locked(self):
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._read(descriptor)
            yield descriptor
        finally:
            os.close(descriptor)

    def _read(self, descriptor):
        """Take in what was appended since; nobody writes meanwhile, so a part of a record has no writer."""
        size = os.fstat(descriptor).st_size
        log = _bytes_at(descriptor, self._position, size - self._position)
        at = 0
        while at + _LENGTHS.size <= len(log):
            key_length, value_length = _LENGTHS.unpack_from(log, at)
            key_end = at + _LENGTHS.size + key_length
            end = key_end + (0 if value_length == _DELETED else value_length)
            if end > len(log):
                break
            key = log[at + _LENGTHS.size : key_end].decode()
            if value_length == _DELETED:
                self._values.pop(key, None)
            else:
                self._values[key] = log[key_end:end]
            at = end
        self._position += at
        if at < len(log):
            os.ftruncate(descriptor, self._position)

    def _write(self, descriptor, key, value):
        """Append a record, all of it or nothing; None as value deletes the key."""
        name = key.encode()
        record = _LENGTHS.pack(len(name), _DELETED if value is None else len(value)) + name + (value or b"")
        done = 0
        try:
            while done < len(record):
                done += os.pwrite(descriptor, record[done:], self._position + done)
        except OSError:
            with suppress(OSError):  # the next who reads would do it, too
                os.ftruncate(descriptor, self._position)
            raise
        self._read(descriptor)

    def _refreshed(self):
        with self._locked():
            return self._values

    def set(self, key, value):
        with self._locked() as descriptor:
            self._write(descriptor, key, to_bytes(value))

    def get(self, key):
        self._wait_seconds([key], self.timeout.total_seconds())
        return self._values[key]

    def add(self, key, amount):
        with self._locked() as descriptor:
            total = int(self._values.get(key, b"0")) + amount
            self._write(descriptor, key, str(total).encode())
            return total

    def append(self, key, value):
        with self._locked() as descriptor:
            self._write(descriptor, key, self._values.get(key, b"") + to_bytes(value))

    def compare_set(self, key, expected, desired):
        expected = to_bytes(expected)
        with self._locked() as descriptor:
            current = self._values.get(key)
            if current == expected or (current is None and not expected):
                self._write(descriptor, key, to_bytes(desired))
            return self._values.get(key, expected)

    def check(self, keys):
        values = self._refreshed()
        return all(key in values for key in keys)

    def delete_key(self, key):
        with self._locked() as descriptor:
            present = key in self._values
            self._write(descriptor, key, None)
            return present

    def num_keys(self):
        return len(self._refreshed())

    def list_keys(self):
        return list(self._refreshed())

    def clone(self):
        return FileStore(self.path)

    def _wait_seconds(self, keys, seconds):
        poll(lambda: self.check(keys), seconds, keys)


def _bytes_at(descriptor, position, length):
    pieces = []
    while length > 0:
        piece = os.pread(descriptor, length, position)
        if not piece:
            break
        pieces.append(piece)
        position, length = position + len(piece), length - len(piece)
    return b"".join(pieces)


def _let_go(path):
    if os.path.exists(path) and _count_down(path) == 0 and os.path.exists(path):
        os.remove(path)


def _count_down(path):
    store = FileStore.__new__(FileStore)
    OwnStore.__init__(store)
    store.path, store._values, store._position = path, {}, 0
    return store.add("cleanup/", -1)
