"""PyTorch's classes for the records of a ``.pt`` file, by which packages read parts of checkpoints."""

import os
from contextlib import contextmanager

import rushlight as torch
from rushlight._command.names import show_from
from rushlight._serialization.settings import get_crc32_options, serialization_config
from rushlight._serialization.zip_records import RecordReader, RecordWriter


class PyTorchFileReader:
    """The records of a file, given by its path or as an open binary file."""

    def __init__(self, name_or_buffer):
        path = isinstance(name_or_buffer, (str, os.PathLike))
        self._own = open(name_or_buffer, "rb") if path else None
        self._reader = RecordReader(
            self._own or name_or_buffer, str(name_or_buffer) if path else "archive", False
        )

    def has_record(self, name):
        return self._reader.has(name)

    def get_record(self, name):
        return self._reader.read(name)

    def get_storage_from_record(self, name, numel, dtype):
        """A tensor over the record's bytes; ``torch.UntypedStorage`` as dtype gives bytes."""
        dtype = dtype if isinstance(dtype, torch.dtype) else torch.uint8
        storage = self._reader.read_storage(name, numel * dtype.itemsize)
        return torch.empty(0, dtype=dtype).set_(storage)

    def get_record_offset(self, name):
        return self._reader.offset(name)

    def get_record_size(self, name):
        return self._reader.size(name)

    def get_all_records(self):
        return self._reader.names()

    def serialization_id(self):
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""


class PyTorchFileWriter:
    """Writes records to a file, given by its path or as an open binary file."""

    def __init__(self, name_or_buffer, compute_crc32=True, alignment=64):
        path = isinstance(name_or_buffer, (str, os.PathLike))
        self._own = open(name_or_buffer, "wb") if path else None
        stem = os.path.splitext(os.path.basename(name_or_buffer))[0] if path else "archive"
        self._archive, self._written = stem or "archive", []
        self._writer = RecordWriter(self._own or name_or_buffer, self._archive, compute_crc32, alignment)

    def archive_name(self):
        return self._archive

    def write_record(self, name, data, size):
        """Write the first `size` bytes of bytes, a string or a storage."""
        self._write(name, data, size)

    def _write(self, name, data, size, filled_later=False):
        if isinstance(data, str):
            data = data.encode()
        elif isinstance(data, torch.UntypedStorage):
            data = torch.empty(0, dtype=torch.uint8).set_(data).numpy()
        self._writer.write(name, memoryview(data)[:size], filled_later)
        self._written.append(name)

    def write_record_metadata(self, name, size):
        """Leave room for a record of `size` bytes."""
        self._write(name, bytes(size), size, filled_later=True)

    def get_all_written_records(self):
        return set(self._written)

    def write_end_of_file(self):
        for name, data in ((".format_version", b"1"), ("version", b"3\n"), ("byteorder", b"little")):
            if name not in self._written:
                self._writer.write(name, data)
        self._writer.close()
        if self._own is not None:
            self._own.close()


@contextmanager
def open_file(name_or_buffer, mode):
    """The file of this path, closed at the end, or the open file that was given; one written is flushed."""
    if isinstance(name_or_buffer, (str, os.PathLike)):
        with open(name_or_buffer, mode) as file:
            yield file
        return
    if "w" not in mode and "r" not in mode:
        raise RuntimeError(f"Expected 'r' or 'w' in mode but got {mode}")
    yield name_or_buffer
    if "w" in mode:
        name_or_buffer.flush()


@contextmanager
def open_reader(name_or_buffer):
    """A `PyTorchFileReader` for a ``with`` statement."""
    yield PyTorchFileReader(name_or_buffer)


@contextmanager
def open_writer(name_or_buffer):
    """A `PyTorchFileWriter` for a ``with`` statement, whose file ends with it."""
    alignment = serialization_config().save.storage_alignment
    writer = PyTorchFileWriter(name_or_buffer, get_crc32_options(), alignment)
    yield writer
    writer.write_end_of_file()
    if hasattr(name_or_buffer, "flush"):
        name_or_buffer.flush()


show_from("", PyTorchFileReader, PyTorchFileWriter)
