"""Tensors in files of the safetensors format: a table in JSON, then the bytes. Reading maps the file, looks
at the table only, and trusts none of it."""

import json
import mmap
import os

import rushlight
from rushlight import _C
from rushlight._serialization.zip_records import write_atomically
from rushlight.storage import UntypedStorage

__all__ = ["SafetensorError", "load", "load_file", "safe_open", "save", "save_file"]

_DTYPES = _C._safetensors_types()
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


class SafetensorError(Exception):
    """A file is not in the format, or names something that it does not hold."""


# --- writing


def _check_tensor(name, tensor):
    if not isinstance(name, str):
        raise ValueError(f"safetensors: names of tensors are strings, but got {name!r}")
    if not isinstance(tensor, rushlight.Tensor):
        raise ValueError(
            f"safetensors: key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}"
        )
    if tensor.layout is not rushlight.strided or tensor.dtype not in _NAMES:
        raise ValueError(
            f"safetensors: `{name}` is {tensor.layout}, {tensor.dtype}, which the format has not"
        )
    return tensor.detach().cpu().contiguous()


def _layout(tensors, metadata):
    """The header's bytes, and the tensors in the order in which their bytes follow."""
    header = {}
    if metadata is not None:
        if not all(isinstance(part, str) for item in metadata.items() for part in item):
            raise ValueError("safetensors: metadata maps strings to strings")
        header["__metadata__"] = dict(metadata)
    checked = {name: _check_tensor(name, tensor) for name, tensor in tensors.items()}
    # The widest types first, so that all are aligned.
    order = sorted(checked.items(), key=lambda item: (-item[1].element_size(), item[0]))
    at = 0
    for name, tensor in order:
        end = at + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, end],
        }
        at = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, [tensor for _, tensor in order]


def _bytes_of(tensor):
    flat = tensor.reshape(-1).view(rushlight.uint8) if tensor.numel() else None
    return memoryview(flat.numpy()) if flat is not None else b""


def save_file(tensors, filename, metadata=None):
    """Write a dict of tensors to a file, at once or not at all.

    Args:
        metadata: strings by strings, kept in the file's header.
    """
    header, order = _layout(tensors, metadata)

    def write(file):
        file.write(header)
        for tensor in order:
            file.write(_bytes_of(tensor))

    write_atomically(os.fsdecode(filename), write)


def save(tensors, metadata=None):
    """A dict of tensors as bytes."""
    header, order = _layout(tensors, metadata)
    return b"".join([header, *(bytes(_bytes_of(tensor)) for tensor in order)])


# --- reading


def looks_like(head, size):
    """Whether a file of this size that begins with these bytes may be in the format."""
    return len(head) > 8 and 2 <= int.from_bytes(head[:8], "little") <= size - 8 and head[8:9] == b"{"


def _read_header(content, name):
    """Of each tensor of a buffer its type, shape, first and one-past-last byte; and the metadata."""
    try:
        return _C._safetensors_header(content, name)
    except RuntimeError as error:
        raise SafetensorError(str(error)) from None


def _make(buffer, dtype, shape, start, end):
    if start % dtype.itemsize:  # written by someone who did not align it
        storage = UntypedStorage(end - start)
        memoryview(storage).cast("B")[:] = buffer[start:end]
    else:
        storage = UntypedStorage._from_buffer(buffer, start, end - start)
    tensor = rushlight.empty(0, dtype=dtype)
    return tensor.set_(storage, 0, shape)


class _Slice:
    """A tensor of a file, of which indexing reads a part."""

    def __init__(self, opened, name):
        self._opened, self._name = opened, name

    def get_shape(self):
        return list(self._opened._entry(self._name)[1])

    def get_dtype(self):
        return _NAMES[self._opened._entry(self._name)[0]]

    def __getitem__(self, index):
        return self._opened._mapped(self._name)[index].clone().to(self._opened._device)


class safe_open:
    """The tensors of a file, read when they are asked for.

    >>> with safe_open("model.safetensors") as file:
    ...     weight = file.get_tensor("weight")
    """

    def __init__(self, filename, framework="pt", device="cpu"):
        if framework not in ("pt", "torch", "pytorch"):
            raise SafetensorError(f"safetensors: framework {framework!r} is not this one; ask for 'pt'")
        self._path, self._device = os.fsdecode(filename), device
        with open(filename, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
        self._entries, self._metadata = _read_header(self._buffer, self._path)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._buffer = None  # tensors that were read keep it mapped

    def keys(self):
        """The names, sorted."""
        return sorted(self._entries)

    def offset_keys(self):
        """The names in the order of their bytes."""
        return list(self._entries)

    def metadata(self):
        return self._metadata

    def _entry(self, name):
        if name not in self._entries:
            raise SafetensorError(f"safetensors: {self._path} does not contain tensor {name}")
        return self._entries[name]

    def _mapped(self, name):
        if self._buffer is None:
            raise SafetensorError("safetensors: File is closed")
        return _make(self._buffer, *self._entry(name))

    def get_tensor(self, name):
        """One tensor. On the CPU it is a copy-on-write view of the file."""
        return self._mapped(name).to(self._device)

    def get_slice(self, name):
        """One tensor, of which indexing reads a part."""
        self._entry(name)
        return _Slice(self, name)


def load_file(filename, device="cpu"):
    """All tensors of a file, by name."""
    with safe_open(filename, device=device) as file:
        return {name: file.get_tensor(name) for name in file.offset_keys()}


def load(data):
    """All tensors of bytes, by name."""
    entries, _ = _read_header(data, "the data")
    content = bytearray(data)
    return {name: _make(content, *entry) for name, entry in entries.items()}
