"""The zip container of a ``.pt`` file: named records, stored uncompressed, data aligned for mapping into
memory."""

import io
import os
import struct
import zlib
from zipfile import ZIP_STORED, BadZipFile, ZipFile

from rushlight import _C

ALIGNMENT = 64
_crc32 = _C._crc32 if _C._crc32_is_fast() else zlib.crc32
_LOCAL_HEADER = 30  # bytes of a local file header before the name
_IN_EXTRA = 0xFFFFFFFF  # in place of a size or offset that stands in an extra field
_LARGE = _IN_EXTRA  # from which on they do
_FLAG_UTF8 = 0x800
_MADE_BY_UNIX = 3 << 8
_1980 = 1 << 5 | 1  # the first day that the format knows
_READABLE = 0o600 << 16


class RecordWriter:
    """Writes records under a top folder, each beginning at a multiple of 64 bytes.

    The standard library's writer takes longer for a small record than all the rest of saving a tensor.
    """

    def __init__(self, file, folder):
        self._file, self._folder = file, folder
        self._at = file.tell()
        self._directory = []

    def write(self, name, data):
        name = f"{self._folder}/{name}".encode()
        view = memoryview(data)
        size, checksum = view.nbytes, _crc32(view)
        extra = struct.pack("<HHQQ", 1, 16, size, size) if size >= _LARGE else b""
        # Padding is an extra field: four bytes of heading, then filler.
        padding = -(self._at + _LOCAL_HEADER + len(name) + len(extra) + 4) % ALIGNMENT
        extra += struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        version, short = (45, _IN_EXTRA) if size >= _LARGE else (20, size)
        common = struct.pack(
            "<4H3L", 0 if name.isascii() else _FLAG_UTF8, 0, 0, _1980, checksum, short, short
        )
        header = struct.pack("<4sH", b"PK\3\4", version) + common
        self._emit(header + struct.pack("<2H", len(name), len(extra)) + name + extra)
        self._directory.append((name, size, self._at - _LOCAL_HEADER - len(name) - len(extra), common))
        self._emit(view)

    def _emit(self, data):
        self._file.write(data)
        self._at += len(data) if isinstance(data, bytes) else data.nbytes

    def close(self):
        """Write the directory; the file is left open."""
        start = self._at
        for name, size, offset, common in self._directory:
            large = struct.pack("<QQ", size, size) if size >= _LARGE else b""
            short = offset
            if offset >= _LARGE:
                large += struct.pack("<Q", offset)
                short = _IN_EXTRA
            extra = struct.pack("<HH", 1, len(large)) + large if large else b""
            version = 45 if large else 20
            header = struct.pack("<4s2H", b"PK\1\2", _MADE_BY_UNIX | version, version) + common
            lengths = struct.pack("<5H2L", len(name), len(extra), 0, 0, 0, _READABLE, short)
            self._emit(header + lengths + name + extra)
        self._close_directory(start, self._at - start, len(self._directory))

    def _close_directory(self, start, size, count):
        if start >= _LARGE or size >= _LARGE or count >= 0xFFFF:
            at = self._at
            self._emit(struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start))
            self._emit(struct.pack("<4sLQL", b"PK\6\7", 0, at, 1))
            count, size, start = 0xFFFF, _IN_EXTRA, _IN_EXTRA
        self._emit(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, size, start, 0))


class RecordReader:
    """Reads records by name; every fault of the container is a RuntimeError that names the file."""

    def __init__(self, file, name):
        self._file, self._name = file, name
        self._base = file.tell()
        try:
            self._zip = ZipFile(file)
        except (BadZipFile, OSError, ValueError, struct.error) as e:
            raise self._damaged(f"failed finding central directory ({e})") from None
        names = [n for n in self._zip.namelist() if n.endswith("/data.pkl") or n == "data.pkl"]
        names = names or [n for n in self._zip.namelist() if n.endswith("/constants.pkl")]
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
        raise RuntimeError(f"Parent directory {folder} does not exist.")
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
