"""What `torch.save` and `torch.load` do by default; part of it has functions in `rushlight.serialization`."""

import mmap as _mmap
import sys

from rushlight.utils._config_module import install_config_module


class load:
    """Reading: `mmap` is what `load` takes where its caller says nothing; the byte order of files that do not
    say theirs; how files are mapped. Offsets of storages are found in the file's own table, whatever
    `calculate_storage_offsets` says."""

    mmap: bool = False
    endianness: object = None
    mmap_flags: int | None = getattr(_mmap, "MAP_PRIVATE", None)
    calculate_storage_offsets: bool = False


class save:
    """Writing: whether there are checksums, and at multiples of how many bytes storages begin. Devices copy
    into pinned memory where that is faster, whatever `use_pinned_memory_for_d2h` says."""

    compute_crc32: bool = True
    use_pinned_memory_for_d2h: bool = False
    storage_alignment: int = 64


install_config_module(sys.modules[__name__])
