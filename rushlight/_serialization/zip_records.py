"""The zip container of a ``.pt`` file: named records, stored uncompressed, data aligned for mapping into
memory."""

import io
import os
import struct
from zipfile import ZIP64_LIMIT, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from rushlight._C import _crc32
from rushlight._errors.advice import advised

ALIGNMENT = 64
_LOCAL_HEADER = 30  # bytes of a local file header before the name
_ZIP64_EXTRA = 20  # what zipfile puts after our padding for large records
# An extra field that ends at the next multiple of 64: four bytes of heading, then filler.
_PADDING = [
    struct.pack("<2sH", b"FB", (n - 4) % ALIGNMENT) + b"Z" * ((n - 4) % ALIGNMENT) for n in range(ALIGNMENT)
]


class RecordWriter:
    """Writes records under a top folder, each beginning at a multiple of 64 bytes.

    Contents are at hand as a whole, so each record is its header and its bytes, one after the other:
    zipfile's own way would go back to complete the header.
    """

    def __init__(self, file, folder):
        self._zip = ZipFile(file, "w", ZIP_STORED, allowZip64=True)
        self._file, self._position = self._zip.fp, self._zip.start_dir
        self._folder = folder

    def write(self, name, data):
        info = ZipInfo(f"{self._folder}/{name}")
        info.file_size = info.compress_size = size = memoryview(data).nbytes
        info.CRC = _crc32(data)
        info.external_attr = 0o600 << 16
        info.header_offset = self._position
        start = self._position + _LOCAL_HEADER + len(info.filename.encode())
        large = size > ZIP64_LIMIT
        info.extra = _PADDING[-(start + _ZIP64_EXTRA * large) % ALIGNMENT]
        header = info.FileHeader(large)
        self._file.write(header)
        self._file.write(data)
        info.extra = b""  # the central directory does not need it
        self._position += len(header) + size
        self._zip.filelist.append(info)
        self._zip.NameToInfo[info.filename] = info

    def close(self):
        self._zip.start_dir, self._zip._didModify = self._position, True
        self._zip.close()


class RecordReader:
    """Reads records by name; every fault of the container is a RuntimeError that names the file."""

    def __init__(self, file, name, pickled=True):
        """`pickled`: whether the file must hold an object; else any records do."""
        self._file, self._name = file, name
        self._base = file.tell()
        try:
            self._zip = ZipFile(file)
        except (BadZipFile, OSError, ValueError, struct.error) as e:
            raise self._damaged(f"failed finding central directory ({e})") from None
        names = [n for n in self._zip.namelist() if n.endswith("/data.pkl") or n == "data.pkl"]
        names = names or [n for n in self._zip.namelist() if n.endswith("/constants.pkl")]
        if not names and not pickled:
            names = [f"{n.partition('/')[0]}/" for n in self._zip.namelist() if "/" in n]
        if not names:
            raise self._damaged("no record data.pkl")
        self._folder = names[0].rpartition("/")[0]
        file.seek(0, os.SEEK_END)
        self._end = file.tell()

    def _damaged(self, what):
        return RuntimeError(
            f"PytorchStreamReader failed reading zip archive: {what}: {self._name}. If you are seeing this "
            "error, there is a high likelihood that your checkpoint file is corrupted. This can happen if "
            "the checkpoint was not saved properly, was transferred incorrectly, or the file was modified "
            "after saving."
        )

    def _info(self, name):
        try:
            return self._zip.getinfo(f"{self._folder}/{name}" if self._folder else name)
        except KeyError:
            raise self._damaged(f"file not found: {self._folder}/{name}") from None

    def has(self, name):
        return f"{self._folder}/{name}" in self._zip.NameToInfo

    def names(self):
        skip = len(self._folder) + 1 if self._folder else 0
        return [name[skip:] for name in self._zip.namelist() if name.startswith(self._folder)]

    def size(self, name):
        return self._info(name).file_size

    def offset(self, name):
        """Where in the file a record's data begins, after checking that it lies inside the file."""
        info = self._info(name)
        if info.compress_type != ZIP_STORED or info.flag_bits & 1:
            raise self._damaged(f"record {info.filename} is compressed or encrypted")
        self._file.seek(info.header_offset)
        header = self._file.read(_LOCAL_HEADER)
        if len(header) < _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
            raise self._damaged(f"record {info.filename} has no local header")
        name_length, extra_length = struct.unpack("<HH", header[26:])
        start = info.header_offset + _LOCAL_HEADER + name_length + extra_length
        if start + info.file_size > self._end:
            raise self._damaged(f"record {info.filename} reaches past the end of the file")
        return start

    def read_into(self, name, target):
        """Fill a buffer from the beginning of a record; the checksum is checked when all of it is read."""
        start, info, view = self.offset(name), self._info(name), memoryview(target).cast("B")
        if view.nbytes > info.file_size:
            raise self._damaged(
                f"record {info.filename} has {info.file_size} bytes where {view.nbytes} are needed"
            )
        self._file.seek(start)
        done = 0
        while done < view.nbytes:
            n = self._read_some(view[done:])
            if not n:
                raise self._damaged(f"record {info.filename} ends early")
            done += n
        if done == info.file_size and _crc32(view) != info.CRC:
            raise self._damaged(f"record {info.filename} fails its checksum")

    def _read_some(self, view):
        if hasattr(self._file, "readinto"):
            return self._file.readinto(view)
        data = self._file.read(view.nbytes)
        view[: len(data)] = data
        return len(data)

    def read(self, name):
        self.offset(name)  # before allocating: the size is only believed once it fits the file
        data = bytearray(self.size(name))
        self.read_into(name, data)
        return bytes(data)


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
        if os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def write_to_stream(file, write):
    """Call ``write`` on a file object, through memory where it cannot tell its position."""
    try:
        file.tell()
    except (AttributeError, OSError, io.UnsupportedOperation):
        buffer = io.BytesIO()
        write(buffer)
        file.write(buffer.getbuffer())
    else:
        write(file)
    if hasattr(file, "flush"):
        file.flush()
