"""The zip container of a ``.pt`` file: named records, stored uncompressed, data aligned for mapping into
memory."""

import errno
import os

from rushlight._C import _Archive as RecordReader
from rushlight._C import _ArchiveWriter
from rushlight._errors.advice import advised

__all__ = ["RecordReader", "RecordWriter", "is_zip", "synchronize", "write_atomically", "write_to_stream"]


class RecordWriter:
    """Writes records under a top folder, each beginning at a multiple of so many bytes."""

    def __init__(self, file, folder, checked=True, alignment=64):
        self._file, self._writer, self._checked = file, _ArchiveWriter(folder, alignment), checked

    def write(self, name, data, filled_later=False):
        """A record that is filled later, in the file, bears no checksum."""
        self._file.write(self._writer.header(name, data, self._checked and not filled_later))
        self._file.write(data)

    def close(self):
        self._file.write(self._writer.end())


def is_zip(file):
    """Whether the file begins like a zip archive; its position stays."""
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    return head == b"PK\x03\x04"


def write_atomically(path, write):
    """Call ``write(file)`` on a temporary neighbour and move it over ``path`` when all went well."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise advised(RuntimeError(f"Parent directory {folder} does not exist."))
    if os.path.exists(path) and not os.path.isfile(path):
        if os.path.isdir(path):
            raise IsADirectoryError(f"save: {path} is a directory; give the name of a file")
        with open(path, "wb") as file:  # a device or a pipe cannot be replaced
            write(file)
        return
    temporary = f"{path}.{os.getpid():x}{os.urandom(4).hex()}.tmp"
    try:
        with open(temporary, "xb") as file:
            write(file)
            synchronize(file)
        if os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def synchronize(file):
    """Have the contents on the disk, before a name is given to them: else a loss of power leaves the name of
    an empty file."""
    file.flush()
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):  # a file system that cannot
            raise


def write_to_stream(file, write):
    """Call ``write`` on a file object, of which nothing but ``write`` is asked."""
    write(file)
    if hasattr(file, "flush"):
        file.flush()
