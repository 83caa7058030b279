"""Thread-local variables that are reached without a call share memory with all libraries loaded late."""

import struct
from pathlib import Path

import rushlight

LIBRARY = Path(rushlight.__file__).parent / "lib" / "librushlight.so"
PT_TLS = 7


def thread_local_bytes(path):
    """The size of an ELF file's thread-local segment (64 bits, little-endian)."""
    data = path.read_bytes()
    assert data[:6] == b"\x7fELF\x02\x01"
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", data, table + i * size) for i in range(count)]
    return sum(memory for kind, _, _, _, _, _, memory, _ in headers if kind == PT_TLS)


def test_little_of_it_is_taken():
    # glibc keeps 1,664 bytes. With PyTorch loaded first 1,408 were the last that fitted: one variable more,
    # and `import rushlight` failed.
    assert 0 < thread_local_bytes(LIBRARY) <= 1152
    # What a program loads later, as OpenMP of scikit-learn, comes out of what the extension leaves.
    assert 0 < thread_local_bytes(Path(rushlight._C.__file__)) <= 216
